package encryption

import (
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
	// Partitions are those to go through; nil is the whole table.
	Partitions []string
	// Concurrency is the number of entities under way at once, 8 for 0.
	Concurrency int
	// Resume goes on where an earlier run was when ReencryptReport.Resume was this text, with the same Partitions.
	Resume string
	// Progress is called after each page of at most 1,000 entities.
	Progress func(ReencryptReport)
	// Failed is called, one call at a time, with each entity that could not be written, and why. The run goes on.
	Failed func(key tables.Key, err error)
}

// ReencryptReport is how far a run is.
type ReencryptReport struct {
	Entities  int64  // seen
	Rewritten int64  // written under the current data key
	Failed    int64  // could not be
	Resume    string // for ReencryptOptions.Resume; "" at the end
}

// Reencrypt writes every entity again that is not encrypted under the registry's current data key, with all its copies: one of
// an older data key, of an older format version, in plaintext (with Options.AcceptPlaintext), or of the old libraries (with Options.Legacy). Each is
// written under its ETag, so that writers may go on meanwhile; what they write has the current key already, once their TTL is
// over. It can be cut off anywhere and repeated, or resumed. The repository has the Encryption among its patterns.
// Requests: 1 for the current key, 1 for each 1,000 entities, those of an Update for each that is written.
func Reencrypt[T any](ctx context.Context, repository *patterns.Repository[T], options *ReencryptOptions) (ReencryptReport, error) {
	const op = "Reencrypt"
	if options == nil {
		options = &ReencryptOptions{}
	}
	if repository == nil {
		return ReencryptReport{}, tables.Invalidf(op, "the repository is nil")
	}
	var e *rowCipher
	for _, p := range patterns.HostOf(repository).Patterns() {
		if found, ok := p.Pattern.(*rowCipher); ok {
			e = found
		}
	}
	if e == nil || options.Concurrency < 0 {
		return ReencryptReport{}, tables.Invalidf(op, "the repository has no encryption, or a Concurrency of %d", options.Concurrency)
	}
	current, err := e.registry.state.named(ctx)
	if err != nil {
		return ReencryptReport{}, err
	}
	if id, _, err := e.registry.state.writeKey(ctx); err != nil || id != current {
		e.registry.state.current.forget(struct{}{}) // or it would be written under what this program took for current
		if err != nil {
			return ReencryptReport{}, err
		}
	}
	run := &reencryption[T]{repository: repository, encryption: e, options: *options, current: current}
	if run.options.Concurrency == 0 {
		run.options.Concurrency = 8
	}
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

// read narrows a query down to what tells whether an entity is to be written: its seal and, where there may be plaintext of what
// was declared since, that.
func (r *reencryption[T]) read(q tables.Query[T]) tables.Query[T] {
	o, names := r.encryption.options, []string{SealProperty}
	switch {
	case o.AcceptPlaintext && (o.Resolver != nil || o.Sign != nil):
		return q // it may choose any property
	case o.AcceptPlaintext:
		names = slices.Concat(names, r.encryption.tagged, r.encryption.signed)
	}
	return q.Select(names...)
}

// pages goes through a query. Nothing is decrypted to see what is to be done. after is where a run resumes that has come to
// the query's end.
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

// rewrite writes those of a page that need it, several at once.
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
		return // deleted meanwhile; or the run is over, and the page will be gone through again
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

// survey is what Load notes of rows that were read to see whether they are to be written.
type survey struct {
	current DataKeyID

	mu    sync.Mutex
	found []surveyed
}

type surveyed struct {
	entity tables.Key
	done   bool // under the current key, with all that is declared
}

// note takes down how an entity is. The seal is not checked: whoever changes it makes the entity be written once more, or
// not, and is found out when it is read. No entity is made of what was read of it, which other patterns could not tell the type
// or the version of.
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
