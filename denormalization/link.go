package denormalization

import (
	"errors"
	"fmt"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Link says which properties of entities of type S, the sources, are copied into which entities of type H, the holders.
// Either Holders or Find is set. All functions look at stored properties and keys only.
type Link[S, H any] struct {
	// Properties are those of the holders that make up the copy. Copy writes no others.
	Properties []string
	// Copy writes the copy into a holder; with a nil source it clears it. What it writes depends on the source alone.
	Copy func(source *S, holder *H)
	// SourceOf returns the source whose copy a holder has, false for none. With Find it is the holder's own reference, which
	// Copy leaves alone. With Holders it is part of the copy: Copy sets what SourceOf returns, and clears it with a nil
	// source; the writer of a new holder may set it to say whose copy the holder is to get.
	SourceOf func(holder *H) (source tables.Key, ok bool)
	// Required refuses a holder whose SourceOf returns a source that does not exist, with tables.ErrMissingReference. A
	// source that is deleted later is not refused: its holders are cleared. NewInPartition always requires the source.
	Required bool
	// Holders returns the keys of the holders of a source, where the source names them: the department that an employee
	// manages. It is pure. A holder that does not exist is passed over.
	Holders func(source *S) []tables.Key
	// Find narrows a query of all holders to those of a source, where the holders name their source: the employees of a
	// department. It may return a query of an index of the holders instead. It gets the source's key, so that it finds the
	// holders of a source that was deleted, too. Holders for which SourceOf returns another source are passed over. Its
	// Select may leave out all but Properties and what Copy and SourceOf look at.
	Find func(holders tables.Query[H], source tables.Key) tables.Query[H]
}

// Options are the options of New and NewInPartition.
type Options struct {
	// Limit bounds the holders of one source (default 10,000).
	Limit int
	// Concurrency is the number of holders that are written at the same time (default 8).
	Concurrency int
}

const (
	defaultLimit       = 10_000
	defaultConcurrency = 8
)

// Copies are the two patterns of a link: Source is given to NewRepository of the sources, Holder to NewRepository of the
// holders, in either order. Each belongs to one repository.
type Copies[S, H any] struct{ relation[S, H] }

// New makes a link whose holders are anywhere. Intents keep the copies, so both repositories need Schema.Intents. name tells
// the link from other patterns; intents on a queue contain it, so it stays the same from one version of a program to the next.
func New[S, H any](name string, link Link[S, H], options *Options) *Copies[S, H] {
	return newCopies(name, link, options, false)
}

// NewInPartition makes a link whose holders are in their sources' partitions, on the same table. A change of a source writes
// its holders in the same transaction, and a change of a holder that needs a copy writes the source, unchanged, in the same
// transaction, so no reader sees them differ, and no queue is needed. Neither repository may have patterns with effects outside
// of the partition, since a transaction cannot hold these.
func NewInPartition[S, H any](name string, link Link[S, H], options *Options) *Copies[S, H] {
	return newCopies(name, link, options, true)
}

func newCopies[S, H any](name string, link Link[S, H], options *Options, inPartition bool) *Copies[S, H] {
	c := &Copies[S, H]{relation[S, H]{name: name, link: link, inPartition: inPartition}}
	c.codec, c.codecErr = tables.NewCodec[H]()
	if options != nil {
		c.options = *options
	}
	return c
}

// Source returns the pattern of the sources' repository: it writes the copies when a source changes, and compares them for
// Repository.Verify of the sources.
func (c *Copies[S, H]) Source() patterns.Pattern[S] { return source[S, H]{&c.relation} }

// Holder returns the pattern of the holders' repository: it fills in the copy of a holder that is inserted, or that changes
// its source or its copy.
func (c *Copies[S, H]) Holder() patterns.Pattern[H] { return holder[S, H]{&c.relation} }

// relation is what the two ends of a link share.
type relation[S, H any] struct {
	name        string
	link        Link[S, H]
	options     Options
	inPartition bool

	codec    *tables.Codec[H]
	codecErr error
	ofSource driver.Binding[S]
	ofHolder driver.Binding[H]
}

// linked is a relation whose two ends were given to their repositories.
type linked[S, H any] struct {
	*relation[S, H]
	sources driver.Host[S]
	holders driver.Host[H]
}

// check tells what is wrong with a link.
func (r *relation[S, H]) check() error {
	l := &r.link
	switch {
	case (l.Holders == nil) == (l.Find == nil):
		return errors.New("the link has both of Link.Holders and Link.Find, or none; set one of them")
	case l.Copy == nil || l.SourceOf == nil:
		return errors.New("the link lacks Link.Copy or Link.SourceOf; set both")
	case r.codecErr != nil:
		return r.codecErr
	case len(l.Properties) == 0:
		return errors.New("Link.Properties is empty; name the holder's properties that Link.Copy writes")
	case r.options.Limit < 0 || r.options.Concurrency < 0:
		return fmt.Errorf("Options.Limit is %d and Options.Concurrency %d; both must be 0 (meaning the default) or more", r.options.Limit, r.options.Concurrency)
	case r.inPartition && l.Find != nil:
		return errors.New("NewInPartition needs Link.Holders; a link with Link.Find is made by New")
	}
	return nil
}

// staysInside refuses the patterns of a repository for an end of a link in the partition, if one has effects outside of it.
func staysInside[T any](all []driver.Implementation[T]) error {
	for _, p := range all {
		if p.Outside != nil || p.OutsideKeys != nil {
			return fmt.Errorf("NewInPartition writes source and holder in one transaction; use New: pattern %q has effects outside of the partition, which a transaction cannot hold", p.Name)
		}
	}
	return nil
}

// checkTables refuses a link in the partition whose ends are on two tables.
func (r *relation[S, H]) checkTables(sources, holders *tables.Table) error {
	if r.inPartition && !sources.Same(holders) {
		return fmt.Errorf("the sources are on table %s and the holders on table %s; NewInPartition needs one table, New does not", sources.Name(), holders.Name())
	}
	return nil
}

// ready returns the link with both its repositories. Each end gives its own, which it has before NewRepository returns, and nil for
// the other. It is an error until both ends were given to a repository.
func (r *relation[S, H]) ready(sources driver.Host[S], holders driver.Host[H]) (*linked[S, H], error) {
	var err error
	if sources == nil {
		if sources, err = r.ofSource.Host("", r.name); err != nil {
			return nil, errors.New("the link has no repository of sources; give Copies.Source to NewRepository of the sources")
		}
	}
	if holders == nil {
		if holders, err = r.ofHolder.Host("", r.name); err != nil {
			return nil, errors.New("the link has no repository of holders; give Copies.Holder to NewRepository of the holders")
		}
	}
	return &linked[S, H]{r, sources, holders}, nil
}

// limit is Options.Limit.
func (r *relation[S, H]) limit() int {
	if r.options.Limit == 0 {
		return defaultLimit
	}
	return r.options.Limit
}

// tooMany is the error for a source with more holders than the limit.
func (r *relation[S, H]) tooMany(source tables.Key) error {
	return &tables.Error{Key: source, Pattern: r.name, Kind: tables.ErrTooLarge,
		Err: fmt.Errorf("the source has more than %d holders, the Options.Limit of its link", r.limit())}
}

// holdersOf returns the keys of the holders that a source names, each once.
func (r *linked[S, H]) holdersOf(source *S) ([]tables.Key, error) {
	if r.link.Holders == nil || source == nil {
		return nil, nil
	}
	named := r.link.Holders(source)
	keys, seen := make([]tables.Key, 0, len(named)), make(map[tables.Key]bool, len(named))
	for _, key := range named {
		if seen[key] {
			continue
		}
		if err := checkKey(key); err != nil {
			return nil, fmt.Errorf("the key of a holder: %w", err)
		}
		if err := r.checkSelf(r.sources.KeyOf(source), key); err != nil {
			return nil, err
		}
		seen[key] = true
		keys = append(keys, key)
	}
	if len(keys) > r.limit() {
		return nil, r.tooMany(r.sources.KeyOf(source))
	}
	return keys, nil
}

// checkSelf refuses an entity that is its own source.
func (r *linked[S, H]) checkSelf(source, holder tables.Key) error {
	if source == holder && r.sources.Table().Same(r.holders.Table()) {
		return errors.New("an entity cannot hold a copy of itself")
	}
	return nil
}

// names reports whether a source names a holder. With Find every holder that refers to a source counts as named by it. What the
// link refuses names nobody.
func (r *relation[S, H]) names(source *S, holder tables.Key) bool {
	switch {
	case source == nil:
		return false
	case r.link.Find != nil:
		return true
	}
	keys := r.link.Holders(source)
	return len(keys) <= r.limit() && slices.Contains(keys, holder)
}

func checkKey(key tables.Key) error {
	return errors.Join(compoundkey.CheckKey(key.Partition), compoundkey.CheckKey(key.Row))
}
