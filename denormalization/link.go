package denormalization

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Link says which properties of entities of type S, the sources, are copied into which entities of type H, the
// holders. Set either Holders or Find. The functions must use only keys and stored properties.
type Link[S, H any] struct {
	// Properties names the properties of the holders that make up the copy. Copy must not change other
	// properties.
	Properties []string
	// Copy writes the copy of source into holder; if source is nil, it clears the copy. The written values must
	// depend only on source.
	Copy func(source *S, holder *H)
	// SourceOf returns the key of the source whose copy a holder has, or false if it has none. With Find it returns the
	// holder's own reference to its source, which Copy must not change. With Holders the reference is part of the copy: Copy
	// sets it, and clears it if source is nil. The writer of a new holder may set it to request that source's copy.
	SourceOf func(holder *H) (source tables.Key, ok bool)
	// Required makes a write that inserts a holder, or changes its source or its copy, return
	// tables.ErrMissingReference if the source does not exist (default false; with NewInPartition always true).
	// Required does not prevent the delete of a source; then the copies of its holders are cleared.
	Required bool
	// Holders returns the keys of a source's holders, if the source determines them, for example the department that an
	// employee manages. It must be pure. Holders that do not exist are skipped.
	Holders func(source *S) []tables.Key
	// Find restricts a query of all holders to the holders of one source. Use it if each holder refers to its
	// source, for example each employee to a department. Instead of restricting the given query, it may return
	// a query of an index of the holders. It gets only the source's key, so that it also works after the source
	// was deleted. Holders for which SourceOf returns another source are skipped. If it uses Select, it must
	// select Properties and all properties that Copy and SourceOf use.
	Find func(holders tables.Query[H], source tables.Key) tables.Query[H]
}

// Options are the options of New and NewInPartition; nil is the same as the zero value.
type Options struct {
	// Limit is the maximum number of holders of one source (default 10,000). More holders cause
	// tables.ErrTooLarge.
	Limit int
	// Concurrency is the number of transactions that New's link writes in parallel (default 8), each of up to 50 holders of one
	// partition.
	Concurrency int
}

const (
	defaultLimit       = 10_000
	defaultConcurrency = 8
)

// Copies has the two patterns of a link. Give Source to NewRepository of the sources and Holder to
// NewRepository of the holders, in either order. Each of the two patterns belongs to one repository.
type Copies[S, H any] struct{ relation }

// New makes a link whose holders may be in any partition, table or account. The copies are written by intents,
// so both repositories need tables of a patterns.Store. name distinguishes the link from other patterns.
// Intents on a queue contain the name, so do not change it between versions of a program. NewRepository returns
// ErrWiring for an invalid link.
func New[S, H any](name string, link Link[S, H], options *Options) *Copies[S, H] {
	return newCopies(name, link, options, false)
}

// NewInPartition makes a link whose holders are in the partition and table of their sources. A change of a
// source writes its holders in the same transaction. A change of a holder that needs a copy writes the source,
// unchanged, in the same transaction. So no reader sees a source and a holder that do not match, and the link
// needs no queue. It needs Link.Holders. NewRepository returns ErrWiring for an invalid link.
func NewInPartition[S, H any](name string, link Link[S, H], options *Options) *Copies[S, H] {
	return newCopies(name, link, options, true)
}

func newCopies[S, H any](name string, link Link[S, H], options *Options, inPartition bool) *Copies[S, H] {
	c := &Copies[S, H]{relation{name: name, link: erased(link), holderType: reflect.TypeFor[H](), inPartition: inPartition}}
	c.codec, c.codecErr = core.CodecOf[H]()
	if options != nil {
		c.options = *options
	}
	c.options.Limit = cmp.Or(c.options.Limit, defaultLimit)
	c.options.Concurrency = cmp.Or(c.options.Concurrency, defaultConcurrency)
	return c
}

// Source returns the pattern for the sources' repository. It writes the copies when a source changes, and lets
// Repository.Verify of the sources compare them.
func (c *Copies[S, H]) Source() patterns.Pattern[S] { return source[S]{&c.relation} }

// Holder returns the pattern for the holders' repository. It fills in the copy when a holder is inserted, or
// when a change of a holder affects its source or its copy.
func (c *Copies[S, H]) Holder() patterns.Pattern[H] { return holder[H]{&c.relation} }

// relation is the part of a link that its two patterns share. Its entities are pointers to S and H.
type relation struct {
	name        string
	link        untypedLink
	options     Options
	inPartition bool

	holderType reflect.Type
	codec      *core.Codec // of holders
	codecErr   error
	ofSource   driver.Binding
	ofHolder   driver.Binding
}

// untypedLink is a Link without S and H.
type untypedLink struct {
	Properties []string
	Copy       func(source, holder any)
	SourceOf   func(holder any) (source tables.Key, ok bool)
	Required   bool
	Holders    func(source any) []tables.Key
	Find       func(holders driver.Query, source tables.Key) core.Query
}

func erased[S, H any](link Link[S, H]) untypedLink {
	l := untypedLink{Properties: link.Properties, Required: link.Required}
	if link.Copy != nil {
		l.Copy = func(source, holder any) { link.Copy(driver.As[S](source), holder.(*H)) }
	}
	if link.SourceOf != nil {
		l.SourceOf = func(holder any) (tables.Key, bool) { return link.SourceOf(holder.(*H)) }
	}
	if link.Holders != nil {
		l.Holders = func(source any) []tables.Key { return link.Holders(source.(*S)) }
	}
	if link.Find != nil {
		l.Find = func(holders driver.Query, source tables.Key) core.Query {
			return core.Query(link.Find(tables.Query[H](holders), source))
		}
	}
	return l
}

// linked is a relation whose two patterns were given to their repositories.
type linked struct {
	*relation
	sources driver.Host
	holders driver.Host
}

// check returns an error if a link is invalid.
func (r *relation) check() error {
	l := &r.link
	switch {
	case (l.Holders == nil) == (l.Find == nil):
		return errors.New("the link has both Link.Holders and Link.Find, or neither; set one of them")
	case l.Copy == nil || l.SourceOf == nil:
		return errors.New("Link.Copy or Link.SourceOf is nil; set both")
	case r.codecErr != nil:
		return r.codecErr
	case len(l.Properties) == 0:
		return errors.New("Link.Properties is empty; name the holder's properties that Link.Copy writes")
	case r.options.Limit < 0 || r.options.Concurrency < 0:
		return fmt.Errorf("Options.Limit is %d and Options.Concurrency %d; both must be 0 (meaning the default) or more", r.options.Limit, r.options.Concurrency)
	case r.inPartition && l.Find != nil:
		return errors.New("Link.Find is set, and NewInPartition needs Link.Holders; set that, or use New")
	}
	return nil
}

// checkTables returns an error if a link of NewInPartition has its sources and holders on two tables.
func (r *relation) checkTables(sources, holders *tables.Table) error {
	if r.inPartition && !sources.Same(holders) {
		return fmt.Errorf("the sources are on table %s and the holders on table %s; NewInPartition needs one table for both, so use New", sources.Name(), holders.Name())
	}
	return nil
}

// ready returns the link with both its repositories, or an error if one of them does not have the link's
// pattern yet. The caller passes the repository of its own end, which its Attach has received, and nil for the
// other end.
func (r *relation) ready(sources driver.Host, holders driver.Host) (*linked, error) {
	var err error
	if sources == nil {
		if sources, err = r.ofSource.Host("", r.name); err != nil {
			return nil, errs.Wiringf("", "", "the link has no repository of sources; give Copies.Source to NewRepository of the sources")
		}
	}
	if holders == nil {
		if holders, err = r.ofHolder.Host("", r.name); err != nil {
			return nil, errs.Wiringf("", "", "the link has no repository of holders; give Copies.Holder to NewRepository of the holders")
		}
	}
	return &linked{r, sources, holders}, nil
}

// tooMany returns the error for a source with more holders than the limit.
func (r *relation) tooMany(source tables.Key) error {
	return &tables.Error{Key: source, Pattern: r.name, Kind: tables.ErrTooLarge,
		Err: fmt.Errorf("the source has more than %d holders, the link's Options.Limit; raise the limit", r.options.Limit)}
}

// holdersOf returns the keys of the holders that a source names, each once; none for nil, or with Find.
func (r *linked) holdersOf(source any) ([]tables.Key, error) {
	if r.link.Holders == nil || source == nil {
		return nil, nil
	}
	keys := distinct(r.link.Holders(source))
	for _, key := range keys {
		if err := checkKey(key); err != nil {
			return nil, fmt.Errorf("Link.Holders returned an invalid key: %w", err)
		}
		if err := r.checkPair(r.sources.KeyOf(source), key); err != nil {
			return nil, err
		}
	}
	if len(keys) > r.options.Limit {
		return nil, r.tooMany(r.sources.KeyOf(source))
	}
	return keys, nil
}

// checkPair returns an error if a source cannot have a holder: an entity is not its own source, NewInPartition copies within
// a partition, and Schema.MayName of either repository can refuse the pair.
func (r *linked) checkPair(source, holder tables.Key) error {
	switch {
	case source == holder && r.sources.Table().Same(r.holders.Table()):
		return errors.New("the link makes an entity the holder of its own copy; a holder must be another entity than its source")
	case r.inPartition && source.Partition != holder.Partition:
		return fmt.Errorf("the source (%q, %q) and the holder (%q, %q) are in two partitions; a link of NewInPartition copies within a partition only, so use New", source.Partition, source.Row, holder.Partition, holder.Row)
	}
	return cmp.Or(r.sources.MayName(source, holder), r.holders.MayName(holder, source))
}

// names reports whether a source names a holder, and may have it. With Find, only the holder decides to which source it
// belongs. A source with more holders than the limit names none.
func (r *linked) names(source any, holder tables.Key) bool {
	switch {
	case source == nil || r.checkPair(r.sources.KeyOf(source), holder) != nil:
		return false
	case r.link.Find != nil:
		return true
	}
	keys := distinct(r.link.Holders(source))
	return len(keys) <= r.options.Limit && slices.Contains(keys, holder)
}

// distinct returns the keys in their order, each once: Link.Holders may name a holder several times.
func distinct(named []tables.Key) []tables.Key {
	keys, seen := make([]tables.Key, 0, len(named)), make(map[tables.Key]bool, len(named))
	for _, key := range named {
		if !seen[key] {
			seen[key] = true
			keys = append(keys, key)
		}
	}
	return keys
}

func checkKey(key tables.Key) error {
	return errors.Join(compoundkey.CheckKey(key.Partition), compoundkey.CheckKey(key.Row))
}

// end is one of the two ends of a link.
type end uint8

const (
	bySource end = iota + 1 // the source's end writes a holder with its copy
	byHolder                // the holder's end writes a source, unchanged, in the holder's transaction
)

// byKey marks the context of a write that one end of a link makes at the other end. The pattern of the other
// end then does nothing.
type byKey struct {
	end      end
	relation any
}

func by(ctx context.Context, end end, relation any) context.Context {
	return context.WithValue(ctx, byKey{end, relation}, true)
}

func isBy(ctx context.Context, end end, relation any) bool {
	return ctx.Value(byKey{end, relation}) != nil
}
