// Package composition has only tests, which check that the patterns compose. docs/explanation/composition.md
// says which patterns can be combined, and these tests check it:
//
//   - TestMatrix reads the tables of that page. For each pair that the page allows, it makes a repository
//     with both patterns, inserts, gets, replaces and deletes an entity, and checks that Verify finds
//     nothing. For every other pair it checks that NewRepository returns tables.ErrWiring, naming the reason,
//     before any request.
//   - TestOrder gives patterns to NewRepository in different orders, and checks that the same rows are stored
//     and read.
//   - TestEverything goes through all verbs, reads and repairs with one entity type that has all of these at
//     once: indexes and lists of every kind, a denormalized copy, encryption, a sealed large value, several
//     rows, numbers kept, and older versions.
//   - TestEverythingFaults makes storage calls of changes of that type fail. TestEverythingSchedules runs
//     concurrent writers and workers in seeded orders, with deaths and redelivery. Both then check that all
//     rows of the patterns match the entity.
package composition
