package encryption

import (
	"context"
	"slices"

	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Reencrypt rewrites every entity, and its copies, that is not encrypted under the registry's current data
// key: entities under an older data key or format version, in plaintext (with Options.AcceptPlaintext), or of
// the old libraries (with Options.Legacy). It writes each under its ETag, so other writers may continue; each
// of them uses the current key after its TTL has expired. It writes the entities of a partition in change
// sets. If a set fails, it writes its entities one by one, so that an entity that changes all the time delays
// only itself. The other patterns of the repository see driver.ChangeTouch. Reencrypt can be interrupted at
// any point and repeated or resumed. The repository must have the Encryption among its patterns.
//
// An entity that cannot be written does not end the run: Reencrypt gives it to JobOptions.Found, after its
// page, as Undecodable if it cannot be read or decrypted and Different otherwise, with the error in
// Finding.Err. Reencrypt returns ErrWiring if Patterns, Lag, Rows or DryRun is set. The Report counts Read,
// Written, Unchanged, Conflicts, Failed and Findings of this run, without the runs that it resumes.
//
// Requests: 1 for the current key, 1 for each 1,000 entities, and 1 for each change set of 100 rows, so 12
// for 1,000 old entities of a partition without other patterns, 22 with an index in the partition; 2 more for
// each conflict, and with several pages the additional requests of Query.AllParallel.
func Reencrypt[T any](ctx context.Context, repository *patterns.Repository[T], options *patterns.JobOptions) (tables.Report, error) {
	const op = "Reencrypt"
	if repository == nil {
		return tables.Report{}, tables.Wiringf(op, "", "the repository is nil; give one")
	}
	var e *rowCipher
	var name string
	host := patterns.HostOf(repository)
	for _, p := range host.Patterns() {
		if found, ok := p.Pattern.(*rowCipher); ok {
			e, name = found, p.Name
		}
	}
	if e == nil {
		return tables.Report{}, tables.Wiringf(op, "", "the repository has no Encryption among its patterns; give it to NewRepository")
	}
	current, err := e.registry.state.named(ctx)
	if err != nil {
		return tables.Report{}, err
	}
	if id, _, err := e.registry.state.writeKey(ctx); err != nil || id != current {
		e.registry.state.current.forget(struct{}{}) // a cached key may be older than the current one
		if err != nil {
			return tables.Report{}, err
		}
	}
	job := &patterns.RewriteJob{Op: op, Pattern: name, Kind: driver.ChangeTouch, CountsAll: true,
		Outdated: func(entity tables.Key, stored tables.Properties, whole bool) (outdated, known bool) {
			return e.outdated(current, entity, stored, whole)
		}}
	return patterns.RewriteAll(ctx, rows.Open, host, job, options)
}

// outdated reports whether an entity is not under the current data key, or has a declared property that is not protected. If whole
// is false, properties are missing, and that may be unknown. It does not check the seal: a forged seal can only cause one more or
// one fewer write, and the next read detects it.
func (c *rowCipher) outdated(current DataKeyID, entity tables.Key, p tables.Properties, whole bool) (outdated, known bool) {
	if !whole && (c.options.AcceptPlaintext || !p.Has(SealProperty)) {
		return false, false
	}
	stored, _ := p.Get(SealProperty).Bytes()
	seal, ok := parseSeal(stored)
	if !ok || seal.key != current || seal.version != version2 {
		return true, true
	}
	if !c.options.AcceptPlaintext {
		return false, true
	}
	return slices.ContainsFunc(p, func(property tables.Property) bool {
		_, sealed := slices.BinarySearch(seal.names, property.Name)
		return !sealed && seal.signedIndex(property.Name) < 0 && !isOurs(property.Name) &&
			(c.declared(entity, property.Name) || c.signs(entity, property.Name))
	}), true
}
