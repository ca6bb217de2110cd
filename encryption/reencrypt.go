package encryption

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/backoff"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Reencrypt rewrites every entity, and its copies, that is not encrypted under the registry's current data key:
// entities under an older data key or format version, in plaintext (with Options.AcceptPlaintext), or of the old
// libraries (with Options.Legacy). It writes each under its ETag, so other writers may continue; they use the current
// key themselves once their TTL has expired. Reencrypt can be interrupted at any point and repeated or resumed. The
// repository must have the Encryption among its patterns.
//
// An entity that cannot be written does not end the run: Reencrypt gives it to JobOptions.Found, at once, as Undecodable if it
// cannot be read or decrypted and Different otherwise, with the error in Finding.Err. Reencrypt does not use Patterns, Lag, Rows
// and DryRun, which are ErrInvalid. The Report counts Read, Written, Unchanged, Failed and Findings of this run, without the runs
// that it resumes.
//
// Requests: 1 for the current key, 1 for each 1,000 entities, and those of an Update for each entity that is written.
func Reencrypt[T any](ctx context.Context, repository *patterns.Repository[T], options *patterns.JobOptions) (tables.Report, error) {
	const op = "Reencrypt"
	if options == nil {
		options = &patterns.JobOptions{}
	}
	if repository == nil {
		return tables.Report{}, tables.Invalidf(op, "the repository is nil; give one")
	}
	if options.Patterns != nil || options.Lag != 0 || options.Rows != 0 || options.DryRun {
		return tables.Report{}, tables.Invalidf(op, "JobOptions.Patterns, Lag, Rows or DryRun is set, and Reencrypt does not use them; leave them out")
	}
	var e *rowCipher
	var name string
	for _, p := range patterns.HostOf(repository).Patterns() {
		if found, ok := p.Pattern.(*rowCipher); ok {
			e, name = found, p.Name
		}
	}
	if e == nil || options.Concurrency < 0 {
		return tables.Report{}, tables.Invalidf(op, "the repository has no Encryption among its patterns, or JobOptions.Concurrency, %d, is negative", options.Concurrency)
	}
	if err := pace.Check("JobOptions", options.RowsPerSecond); err != nil {
		return tables.Report{}, tables.Invalid(op, err)
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
	run := &reencryption[T]{repository: repository, encryption: e, name: name, options: *options, current: current, began: time.Now()}
	run.options.Concurrency = cmp.Or(run.options.Concurrency, 8)
	run.report.Resume = options.Resume
	err = run.all(pace.With(ctx, options.RowsPerSecond))
	run.report.Elapsed = time.Since(run.began)
	return run.report, err
}

// reencryption is one run.
type reencryption[T any] struct {
	repository *patterns.Repository[T]
	encryption *rowCipher
	name       string // of the encryption, as a pattern
	options    patterns.JobOptions
	current    DataKeyID
	began      time.Time

	mu     sync.Mutex
	report tables.Report
	ended  error // of Found
}

func (r *reencryption[T]) all(ctx context.Context) error {
	partitions := r.options.Partitions
	if partitions == nil {
		return r.pages(ctx, r.repository.Query().AllowTableScan(), r.options.Resume, "", "")
	}
	token := r.options.Resume
	if token != "" {
		var err error
		if r.report.PartitionsDone, token, err = parseResume(token, partitions); err != nil {
			return err
		}
	}
	for i := r.report.PartitionsDone; i < len(partitions); i++ {
		next := ""
		if i+1 < len(partitions) {
			next = resumePrefix(i + 1)
		}
		if err := r.pages(ctx, r.repository.Query().Partition(partitions[i]), token, resumePrefix(i), next); err != nil {
			return err
		}
		token = ""
	}
	return nil
}

// read projects a query to what decides whether an entity must be rewritten: its seal and, with AcceptPlaintext, the
// declared properties that may still be in plaintext.
func (r *reencryption[T]) read(q tables.Query[T]) tables.Query[T] {
	o, names := r.encryption.options, []string{SealProperty}
	switch {
	case o.AcceptPlaintext && (o.Resolver != nil || o.Sign != nil):
		return q // the Resolver may choose any property
	case o.AcceptPlaintext:
		names = slices.Concat(names, r.encryption.tagged, r.encryption.signed)
	}
	return q.Select(names...)
}

// pages runs a query without decrypting anything. after is the position from which a run resumes if the query had been
// read to its end.
func (r *reencryption[T]) pages(ctx context.Context, q tables.Query[T], token, prefix, after string) error {
	q = r.read(q)
	for {
		s := &survey{current: r.current}
		page, err := q.Page(context.WithValue(ctx, surveyKey{}, s), token)
		if err != nil {
			return err
		}
		if err := r.rewrite(ctx, s.found); err != nil {
			return err
		}
		r.report.Read += int64(len(s.found))
		if r.report.Resume = after; page.Next != "" {
			r.report.Resume = prefix + page.Next
		} else if r.options.Partitions != nil {
			r.report.PartitionsDone++
		}
		r.report.Elapsed = time.Since(r.began)
		if r.options.Progress != nil {
			r.options.Progress(r.report)
		}
		if token = page.Next; token == "" {
			return nil
		}
	}
}

// rewrite writes the entities of a page that need it, several at once.
func (r *reencryption[T]) rewrite(ctx context.Context, found []surveyed) error {
	var running errgroup.Group
	running.SetLimit(r.options.Concurrency)
	for _, s := range found {
		if s.done {
			r.count(&r.report.Unchanged)
			continue
		}
		running.Go(func() error {
			if ctx.Err() == nil && r.failed() == nil {
				r.rewriteOne(ctx, s.entity)
			}
			return nil
		})
	}
	_ = running.Wait() // rewriteOne reports the errors
	return cmp.Or(r.ended, ctx.Err())
}

// failed returns the error of Found that ends the run.
func (r *reencryption[T]) failed() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ended
}

func (r *reencryption[T]) count(n *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	*n++
}

// rewriteAttempts limits how often an entity is written again after a write whose outcome is unknown, such as one whose response was
// lost before a concurrent writer followed. To encrypt again what is encrypted already does no harm.
const rewriteAttempts = 5

func (r *reencryption[T]) rewriteOne(ctx context.Context, key tables.Key) {
	err := backoff.Retry(ctx, rewriteAttempts, func() (again bool, err error) {
		_, err = r.repository.Update(ctx, key, func(*T) error { return nil })
		if again = errors.Is(err, tables.ErrUnknownOutcome); again {
			r.count(&r.report.Conflicts)
		}
		return again, err
	})
	switch {
	case errors.Is(err, tables.ErrNotFound) || ctx.Err() != nil:
		return // deleted meanwhile; or the run was stopped, and a resumed run reads the page again
	case err == nil:
		r.count(&r.report.Written)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.report.Failed++; r.ended != nil {
		return // a resumed run reads the page again
	}
	r.report.Findings++
	if r.options.Found == nil {
		return
	}
	kind := patterns.Different
	if errors.Is(err, tables.ErrGarbled) {
		kind = patterns.Undecodable
	}
	r.ended = r.options.Found(patterns.Finding{Kind: kind, Pattern: r.name, Table: r.repository.Table().Name(), Entity: key, Err: err})
}

type surveyKey struct{}

// survey collects, while Load reads rows, which entities must be rewritten.
type survey struct {
	current DataKeyID

	mu    sync.Mutex
	found []surveyed
}

type surveyed struct {
	entity tables.Key
	done   bool // under the current key, with all declared properties protected
}

// note records the state of an entity. It does not check the seal: a forged seal can only cause one more or one fewer
// write, and the next read detects it. It decodes no entity, because other patterns could not determine its type or
// version from the projected row.
func (s *survey) note(e *rowCipher, entity tables.Key, p tables.Properties) error {
	stored, _ := p.Get(SealProperty).Bytes()
	seal, ok := parseSeal(stored)
	done := ok && seal.key == s.current && seal.version == version2
	for _, property := range p {
		_, sealed := slices.BinarySearch(seal.names, property.Name)
		sealed = sealed || seal.signedIndex(property.Name) >= 0
		done = done && (sealed || isOurs(property.Name) || !e.declared(entity, property.Name) && !e.signs(entity, property.Name))
	}
	s.mu.Lock()
	s.found = append(s.found, surveyed{entity: entity, done: done})
	s.mu.Unlock()
	return driver.ErrSkipped
}
