package encryption

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ReencryptOptions are the options of Reencrypt; nil is the same as the zero value.
type ReencryptOptions struct {
	// Partitions are the partitions to process; nil means the whole table.
	Partitions []string
	// Concurrency is the number of entities processed at once (default 8).
	Concurrency int
	// Resume continues an earlier run after the page whose ReencryptReport.Resume was this text. Partitions must be
	// the same.
	Resume string
	// Progress is called after each page of at most 1,000 entities.
	Progress func(ReencryptReport)
	// Failed is called, one call at a time, with each entity that could not be written, and the error. The run
	// continues.
	Failed func(key tables.Key, err error)
}

// ReencryptReport reports how far a run has come.
type ReencryptReport struct {
	Entities  int64  // entities read
	Rewritten int64  // written under the current data key
	Failed    int64  // entities that could not be written
	Resume    string // for ReencryptOptions.Resume; "" at the end
}

// Reencrypt rewrites every entity, and its copies, that is not encrypted under the registry's current data key:
// entities under an older data key or format version, in plaintext (with Options.AcceptPlaintext), or of the old
// libraries (with Options.Legacy). It writes each under its ETag, so other writers may continue; they use the current
// key themselves once their TTL has expired. Reencrypt can be interrupted at any point and repeated or resumed. The
// repository must have the Encryption among its patterns. Requests: 1 for the current key, 1 for each 1,000 entities,
// and those of an Update for each entity that is written.
func Reencrypt[T any](ctx context.Context, repository *patterns.Repository[T], options *ReencryptOptions) (ReencryptReport, error) {
	const op = "Reencrypt"
	if options == nil {
		options = &ReencryptOptions{}
	}
	if repository == nil {
		return ReencryptReport{}, tables.Invalidf(op, "the repository is nil; give one")
	}
	var e *rowCipher
	for _, p := range patterns.HostOf(repository).Patterns() {
		if found, ok := p.Pattern.(*rowCipher); ok {
			e = found
		}
	}
	if e == nil || options.Concurrency < 0 {
		return ReencryptReport{}, tables.Invalidf(op, "the repository has no Encryption among its patterns, or ReencryptOptions.Concurrency, %d, is negative", options.Concurrency)
	}
	current, err := e.registry.state.named(ctx)
	if err != nil {
		return ReencryptReport{}, err
	}
	if id, _, err := e.registry.state.writeKey(ctx); err != nil || id != current {
		e.registry.state.current.forget(struct{}{}) // a cached key may be older than the current one
		if err != nil {
			return ReencryptReport{}, err
		}
	}
	run := &reencryption[T]{repository: repository, encryption: e, options: *options, current: current}
	run.options.Concurrency = cmp.Or(run.options.Concurrency, 8)
	return run.all(ctx)
}

// reencryption is one run.
type reencryption[T any] struct {
	repository *patterns.Repository[T]
	encryption *rowCipher
	options    ReencryptOptions
	current    DataKeyID

	mu       sync.Mutex
	progress ReencryptReport
}

func (r *reencryption[T]) all(ctx context.Context) (ReencryptReport, error) {
	partitions := r.options.Partitions
	if partitions == nil {
		return r.pages(ctx, r.repository.Query().AllowTableScan(), r.options.Resume, "", "")
	}
	done, token := 0, r.options.Resume
	if token != "" {
		var err error
		if done, token, err = parseResume(token, partitions); err != nil {
			return r.progress, err
		}
	}
	for i := done; i < len(partitions); i++ {
		next := ""
		if i+1 < len(partitions) {
			next = resumePrefix(i + 1)
		}
		if _, err := r.pages(ctx, r.repository.Query().Partition(partitions[i]), token, resumePrefix(i), next); err != nil {
			return r.progress, err
		}
		token = ""
	}
	return r.progress, nil
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
func (r *reencryption[T]) pages(ctx context.Context, q tables.Query[T], token, prefix, after string) (ReencryptReport, error) {
	q = r.read(q)
	for {
		s := &survey{current: r.current}
		page, err := q.Page(context.WithValue(ctx, surveyKey{}, s), token)
		if err != nil {
			return r.progress, err
		}
		if err := r.rewrite(ctx, s.found); err != nil {
			return r.progress, err
		}
		r.progress.Entities += int64(len(s.found))
		r.progress.Resume = after
		if page.Next != "" {
			r.progress.Resume = prefix + page.Next
		}
		if r.options.Progress != nil {
			r.options.Progress(r.progress)
		}
		if token = page.Next; token == "" {
			return r.progress, nil
		}
	}
}

// rewrite writes the entities of a page that need it, several at once.
func (r *reencryption[T]) rewrite(ctx context.Context, found []surveyed) error {
	var running errgroup.Group
	running.SetLimit(r.options.Concurrency)
	for _, s := range found {
		if s.done {
			continue
		}
		running.Go(func() error {
			if ctx.Err() == nil {
				r.rewriteOne(ctx, s.entity)
			}
			return nil
		})
	}
	_ = running.Wait() // rewriteOne reports the errors
	return ctx.Err()
}

func (r *reencryption[T]) rewriteOne(ctx context.Context, key tables.Key) {
	_, err := r.repository.Update(ctx, key, func(*T) error { return nil })
	if errors.Is(err, tables.ErrNotFound) || ctx.Err() != nil {
		return // deleted meanwhile; or the run was stopped, and a resumed run reads the page again
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		r.progress.Rewritten++
		return
	}
	r.progress.Failed++
	if r.options.Failed != nil {
		r.options.Failed(key, err)
	}
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
