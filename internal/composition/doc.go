// Package composition has only tests, which check that the patterns compose. docs/explanation/composition.md says what composes with what,
// and these tests check it:
//
//   - TestMatrix reads the tables of that page. For each pair that is said to compose it makes a repository of both and
//     carries an entity through insert, get, replace and delete, with Verify finding nothing; each other pair it finds refused, by a
//     tables.ErrWiring that names what does not fit, before any request.
//   - TestOrder gives patterns to NewRepository in other orders: what is stored and read is the same.
//   - TestEverything goes through all verbs, reads and repairs with one entity type that has all at once: indexes and lists of every
//     kind, a denormalized copy, encryption, a sealed large value, several rows, numbers kept, and older versions.
//   - TestEverythingFaults breaks its changes at storage calls, and TestEverythingSchedules has concurrent writers and workers meet in seeded
//     orders, with deaths and redelivery. Afterwards all that the patterns keep agrees with the entity.
package composition
