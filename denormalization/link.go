package denormalization

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// Link says which properties of entities of type S, the sources, are copied into which entities of type T, the holders.
// Either Holders or Find is set. All functions look at stored properties and keys only.
type Link[S, T any] struct {
	// Target keeps the holders. Its table may be the sources' own.
	Target *patterns.Repository[T]
	// Properties are those of the holders that make up the copy. Copy writes no others.
	Properties []string
	// Holders returns the keys of the holders of a source's copy, where the source says so: the department that an employee
	// manages. It is pure. A holder that is not there is passed over.
	Holders func(source *S) []patterns.Key
	// Find yields the holders of a source's copy, where the holders say so: the employees who name a department as theirs.
	// Holders for which Held returns another source are passed over. It finds them also when the source is gone, hence by
	// its key. A query of Target does, and its Select may leave out all but Properties and what Copy and Held look at.
	Find func(ctx context.Context, source patterns.Key) iter.Seq2[*T, error]
	// Copy writes the copy into a holder; with a nil source it clears it. What it writes depends on the source alone.
	Copy func(source *S, holder *T)
	// Held returns the source whose copy a holder has, false for none. With Holders, Copy decides what it returns: the
	// source, and not any more once the copy is cleared. With Find it is the holder's own reference, which Copy leaves alone.
	Held func(holder *T) (source patterns.Key, ok bool)
	// Limit bounds the holders of one source, 10,000 for 0.
	Limit int
	// Concurrency is the number of holders that are written at once, 8 for 0.
	Concurrency int
}

const (
	defaultLimit       = 10_000
	defaultConcurrency = 8
)

// check tells what is wrong with a link.
func (l *Link[S, T]) check() error {
	switch {
	case l.Target == nil:
		return errors.New("the link has no Target")
	case (l.Holders == nil) == (l.Find == nil):
		return errors.New("the link needs either Holders or Find")
	case l.Copy == nil || l.Held == nil:
		return errors.New("the link needs Copy and Held")
	case len(l.Properties) == 0:
		return errors.New("the link names no Properties")
	case l.Limit < 0 || l.Concurrency < 0:
		return fmt.Errorf("a Limit of %d and a Concurrency of %d", l.Limit, l.Concurrency)
	}
	if known := l.Target.PropertyNames(); known != nil {
		for _, name := range l.Properties {
			if !slices.Contains(known, name) {
				return fmt.Errorf("the link names property %s, which %s does not have", name, l.Target.EntityType())
			}
		}
	}
	return nil
}

// base is what both kinds of details have in common.
type base[S, T any] struct {
	name   string
	link   Link[S, T]
	codec  *patterns.Codec[T]
	source *patterns.Repository[S]
	shares bool // sources and holders are in one table
	nested bool // a change of a holder has effects outside of its partition

	inPartition bool // all holders are in the sources' partitions
}

// PatternName returns the name of the link.
func (b *base[S, T]) PatternName() string { return b.name }

// Attach is called by NewRepository for the sources' repository, with nil where the link is free again.
func (b *base[S, T]) Attach(host patterns.Host) error {
	if host == nil {
		b.source = nil
		return nil
	}
	source, ok := host.(*patterns.Repository[S])
	if !ok {
		return fmt.Errorf("copies of a %T do not fit a repository of %s", *new(S), host.EntityType())
	}
	if b.source != nil {
		return fmt.Errorf("it belongs to a repository on table %s already", b.source.Table().Name())
	}
	if err := b.link.check(); err != nil {
		return err
	}
	codec, err := patterns.NewCodec[T]()
	if err != nil {
		return err
	}
	target := b.link.Target
	b.codec, b.source = codec, source
	b.shares = target.Table().Name() == source.Table().Name() && target.Table().Account() == source.Table().Account()
	b.nested = reachesOut(target.Patterns())
	return nil
}

// reachesOut reports whether patterns have effects outside of their entities' partitions.
func reachesOut(attached []patterns.Pattern) bool {
	return slices.ContainsFunc(attached, func(p patterns.Pattern) bool {
		_, intents := p.(patterns.IntentContributor)
		_, copies := p.(patterns.OutsideCopyContributor)
		return intents || copies
	})
}

// limit is Link.Limit.
func (b *base[S, T]) limit() int {
	if b.link.Limit == 0 {
		return defaultLimit
	}
	return b.link.Limit
}

// tooMany is the error for a source with more holders than the limit.
func (b *base[S, T]) tooMany(source patterns.Key) error {
	return &patterns.Error{Key: source, Index: -1, Pattern: b.name, Kind: patterns.ErrTooLarge,
		Err: fmt.Errorf("the source has more than %d holders, the Limit of its link", b.limit())}
}

// holders returns the keys of a source's holders, each once.
func (b *base[S, T]) holders(source *S) ([]patterns.Key, error) {
	if b.link.Holders == nil || source == nil {
		return nil, nil
	}
	var keys []patterns.Key
	for _, key := range b.link.Holders(source) {
		if err := checkKey(key); err != nil {
			return nil, fmt.Errorf("the key of a holder: %w", err)
		}
		if b.shares && key == b.source.KeyOf(source) {
			return nil, errors.New("an entity cannot hold a copy of itself")
		}
		if !slices.Contains(keys, key) {
			keys = append(keys, key)
		}
	}
	if len(keys) > b.limit() {
		return nil, b.tooMany(b.source.KeyOf(source))
	}
	return keys, nil
}

func checkKey(key patterns.Key) error {
	return errors.Join(compoundkey.CheckKey(key.Partition), compoundkey.CheckKey(key.Row))
}

// Remember notes the holders of a source as it was read. What the link refuses never had any.
func (b *base[S, T]) Remember(entity any, _ patterns.Properties) ([]string, error) {
	keys, err := b.holders(entity.(*S))
	if err != nil {
		return nil, nil
	}
	var items []string
	for _, key := range keys {
		items = append(items, placeOf(key))
	}
	return items, nil
}

// touched returns the holders that a change concerns: those that the source will have, those that it had, and the one that
// is being refreshed.
func (b *base[S, T]) touched(ctx context.Context, c *patterns.Change) (now, all []patterns.Key, err error) {
	if c.Kind != patterns.ChangeDelete {
		if now, err = b.holders(c.Entity.(*S)); err != nil {
			return nil, nil, err
		}
	}
	all = slices.Clone(now)
	for _, place := range append(slices.Clone(c.Remembered(b.name)), b.refreshed(ctx)...) {
		key, err := parsePlace(place)
		if err != nil {
			return nil, nil, err
		}
		if !slices.Contains(all, key) {
			all = append(all, key)
		}
	}
	return now, all, nil
}

// placeSeparator stands between the parts of a holder's key in an intent; no key has it in it.
const placeSeparator = "\t"

// placeOf is a holder's key in intents and audits.
func placeOf(key patterns.Key) string { return key.Partition + placeSeparator + key.Row }

func parsePlace(place string) (patterns.Key, error) {
	partition, row, ok := strings.Cut(place, placeSeparator)
	if !ok {
		return patterns.Key{}, fmt.Errorf("an intent names a holder without a key")
	}
	return patterns.Key{Partition: partition, Row: row}, nil
}
