package largeentities

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// SweepOptions are the options of Property.Sweep; nil is the same as the zero value.
type SweepOptions struct {
	// Grace is the minimum age of a blob that Sweep examines (default 1 hour). Sweep also waits for 7/6 of the Deadline
	// that is stored with each blob, so that every Grace is safe.
	Grace time.Duration
	// DryRun deletes nothing; Deleted and Bytes then count the blobs that would be deleted.
	DryRun bool
	// RowsPerSecond limits how many rows Sweep reads in a second, on average (default 0: no limit), to leave the throughput of
	// the tables to other programs. Sweep reads rows to find out which blobs entities point at.
	RowsPerSecond int
	// Resume continues an earlier run after the page whose SweepReport.Resume was this text. The token of another
	// property causes tables.ErrInvalid.
	Resume string
	// Progress is called after each page of at most 5,000 blobs.
	Progress func(SweepReport)
}

// SweepReport is the result of a sweep.
type SweepReport struct {
	Listed     int   // blobs of the property
	Young      int   // younger than Grace or than 7/6 of their writer's Deadline, or changed while Sweep examined them
	Referenced int   // an entity points at them
	Held       int   // only a copy in another partition points at them, because the intent that updates the copy waits for a worker or is on the poison queue
	Deleted    int   // blobs that Sweep has deleted or, with DryRun, would delete
	Bytes      int64 // total size of the blobs that Deleted counts
	Foreign    int   // stored by another program, for another table, or for a row of this table that is no entity of the repository; not deleted
	Undated    int   // stored by an earlier version, without a Deadline; not deleted, because their writers may still be running
	Failed     int   // their entity or one of its copies could not be read, or the service refused the delete, for example because of a lease; LastFailure is the last error
	// LastFailure is the error of the blob that failed last.
	LastFailure error
	// Resume is the token for SweepOptions.Resume, which continues after the last finished page; "" if the sweep is complete.
	Resume string
}

// Sweep deletes blobs of the property that no entity points at. Such blobs remain if the message of an intent
// was deleted or purged, or is on the poison queue. Sweep is safe while programs write:
//
//   - A listing includes a blob after the request that completes the blob was served. Its writer sends the
//     transaction that points at it within 5/6 of the writer's Deadline by the writer's clock, or never,
//     because the Deadline bounds the writer's lease. The blob's metadata holds the Deadline.
//   - Sweep examines a blob when it is older than Grace and than 7/6 of its Deadline by the service's clock, and then reads its
//     entity. By then the transaction has arrived, or never will, if clocks run at the same speed to within a sixth and a request
//     arrives within a sixth of the Deadline after it was sent.
//   - A later change keeps a pointer only under the ETag of a row that holds it, so a pointer that was
//     removed from the row never comes back.
//   - Sweep deletes a blob only under the ETag that the listing returned.
//
// As long as the intent of a change waits for a worker, a copy of the entity in another partition may still
// point at the blob. Sweep reads the copies under the entity's current keys. It does not find a copy under an
// old key; a read through that copy then reads the entity's own row. So run Sweep when the queue and the
// poison queue are empty, or make Grace longer than the time within which you empty them. If messages were
// lost, first run Repository.Repair, which removes such copies.
//
// You can stop Sweep at any time and continue with Resume. Requests: 1 for each 5,000 blobs, 1 for each entity whose
// blob is older than Grace (2 if the entity does not exist), 1 for each deleted blob; if the entity has copies in other
// partitions, 1 more for each blob that the entity does not point at, and 1 for each of these copies.
func (p *Property[T]) Sweep(ctx context.Context, options *SweepOptions) (SweepReport, error) {
	const op = "Sweep"
	var o SweepOptions
	if options != nil {
		o = *options
	}
	var report SweepReport
	x, err := p.spill(op)
	if err != nil {
		return report, err
	}
	o.Grace = cmp.Or(o.Grace, standardGrace)
	if o.Grace < 0 {
		return report, errs.Wiringf(op, "", "SweepOptions.Grace is %v; it must be 0 (meaning %v) or more", o.Grace, standardGrace)
	}
	if err := pace.Check("SweepOptions", o.RowsPerSecond); err != nil {
		return report, errs.Wiringf(op, "", "%w", err)
	}
	ctx = pace.With(ctx, o.RowsPerSecond)
	marker, err := x.openToken(o.Resume)
	if err != nil {
		return report, err
	}
	prefix := x.blobs.prefix + "/"
	list := &container.ListBlobsFlatOptions{Prefix: &prefix, Include: container.ListBlobsInclude{Metadata: true}}
	if marker != "" {
		list.Marker = &marker
	}
	report.Resume = o.Resume
	for pager := x.blobs.container.NewListBlobsFlatPager(list); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return report, failure(op, prefix, err)
		}
		if page.Date == nil || page.Segment == nil {
			return report, garbled(op, prefix, "the response has no Date header or no list of blobs; repeat the operation")
		}
		if err := x.sweepPage(ctx, o, page.Segment.BlobItems, *page.Date, &report); err != nil {
			return report, err
		}
		report.Resume = ""
		if page.NextMarker != nil && *page.NextMarker != "" {
			report.Resume = x.token(*page.NextMarker)
		}
		if o.Progress != nil {
			o.Progress(report)
		}
	}
	return report, nil
}

const (
	tokenMark      = "tps1"
	tokenSeparator = "\t"
)

// token makes the token of a marker. It names the property's prefix, so that openToken refuses the token of another property.
func (x *spill) token(marker string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join([]string{tokenMark, x.blobs.prefix, marker}, tokenSeparator)))
}

func (x *spill) openToken(token string) (marker string, err error) {
	if token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.SplitN(string(raw), tokenSeparator, 3)
	if err != nil || len(parts) != 3 || parts[0] != tokenMark || parts[1] != x.blobs.prefix {
		return "", errs.Invalidf("Sweep", "SweepOptions.Resume is not a token of an earlier Sweep of this property")
	}
	return parts[2], nil
}

// candidate is a blob of this property.
type candidate struct {
	name  string
	key   tables.Key // key of its entity
	etag  azcore.ETag
	bytes int64

	stored time.Time     // when the blob was stored, or when its Last-Modified was renewed
	term   time.Duration // its writer's Deadline, 0 if not stored
}

// sweepPage examines a page of blobs; now is the time of its listing. An entity's blobs follow each other in the listing, so sweepPage
// keeps what it has read of the last entity.
func (x *spill) sweepPage(ctx context.Context, o SweepOptions, items []*container.BlobItem, now time.Time, report *SweepReport) error {
	var last struct {
		key          tables.Key
		known        bool
		ptr          *pointer
		found, other bool
		err          error
	}
	for _, item := range items {
		if err := ctx.Err(); err != nil {
			return err
		}
		report.Listed++
		c, ok := x.candidateOf(item)
		switch {
		case !ok:
			report.Foreign++
			continue
		case c.term == 0:
			report.Undated++
			continue
		case now.Sub(c.stored) < o.Grace || !lease.Expired(c.stored, now, c.term):
			report.Young++
			continue
		}
		if !last.known || last.key != c.key {
			last.key, last.known = c.key, true
			last.other = false
			if last.ptr, last.found, last.err = x.probeRow(ctx, c.key); last.err == nil && !last.found {
				last.other, last.err = x.ofOther(ctx, c.key)
			}
		}
		err := last.err
		if last.other {
			report.Foreign++
			continue
		}
		if err == nil && last.found && last.ptr != nil && last.ptr.name == c.name {
			report.Referenced++
			continue
		}
		if err == nil {
			err = x.sweepOne(ctx, o, c, last.found, report)
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err != nil {
			report.Failed++
			report.LastFailure = fmt.Errorf("blob %s: %w", c.name, err)
			x.blobs.signals.SweepFailed(ctx, x.blobs.containerName(), err)
		}
	}
	return nil
}

// ofOther reports whether the table has an entity under a key under which the repository finds none: then another
// repository of the table may have stored the blob. A row that the library has added to an entity is none. Requests: 1.
func (x *spill) ofOther(ctx context.Context, key tables.Key) (bool, error) {
	row, err := (*core.Table)(x.host.Table()).Get(ctx, "Sweep", key, map[string]int{})
	switch {
	case errors.Is(err, tables.ErrNotFound):
		return false, nil
	case err != nil:
		return false, err
	}
	return !row.Own.IsCopy, nil
}

// candidateOf returns a listed blob as a candidate. ok is false if it does not belong to the property.
func (x *spill) candidateOf(item *container.BlobItem) (c candidate, ok bool) {
	if item.Name == nil || item.Properties == nil || item.Properties.LastModified == nil || item.Properties.ETag == nil {
		return c, false
	}
	key, ok := decodeKey(blobowner.Label(item.Metadata, metaKey))
	owner := x.blobs.ownerOf(key)
	if !ok || owner.CheckName(*item.Name) != nil || owner.CheckLabels(*item.Name, item.Metadata) != nil {
		return c, false
	}
	c = candidate{name: *item.Name, key: key, etag: *item.Properties.ETag, stored: *item.Properties.LastModified, term: lease.ParseTerm(blobowner.Label(item.Metadata, metaTerm))}
	if item.Properties.ContentLength != nil {
		c.bytes = *item.Properties.ContentLength
	}
	return c, true
}

// sweepOne deletes a blob at which neither its entity nor a copy of the entity points.
func (x *spill) sweepOne(ctx context.Context, o SweepOptions, c candidate, found bool, report *SweepReport) error {
	if found {
		held, err := x.heldOutside(ctx, c)
		if err != nil {
			return err
		}
		if held {
			report.Held++
			return nil
		}
	}
	if !o.DryRun {
		err := x.blobs.remove(ctx, "Sweep", c.name, c.etag)
		if isReplaced(err) {
			report.Young++ // the writer of the blob has renewed it
			return nil
		}
		if err != nil {
			return err
		}
	}
	report.Deleted++
	report.Bytes += c.bytes
	return nil
}

// heldOutside reports whether a copy of the entity in another partition points at the blob. It reads the entity, without its blobs, to
// compute the keys of its copies. Requests: 1, and 1 for each copy.
func (x *spill) heldOutside(ctx context.Context, c candidate) (bool, error) {
	contributing := slices.DeleteFunc(x.host.Patterns(), func(p *driver.Implementation) bool { return p.Outside == nil })
	if len(contributing) == 0 {
		return false, nil
	}
	g := &pointerProbe{key: c.key, seen: map[string]tables.Value{}}
	v, err := x.host.Get(context.WithValue(ctx, pointerProbeKey{}, g), c.key)
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, p := range contributing {
		copies, err := p.Outside.Copies(v)
		if err != nil {
			continue // an entity that a key function refuses has no copies
		}
		for _, one := range copies {
			ptr, there, err := x.probe(ctx, c.key, func(ctx context.Context) error {
				_, err := x.host.GetOutsideCopy(ctx, p.Outside.Table, one.Key, one.Keep)
				return err
			})
			if err != nil {
				return false, err
			}
			if there && ptr != nil && ptr.name == c.name {
				return true, nil
			}
		}
	}
	return false, nil
}

// pointerProbe marks a read of an entity that reads no blob, and collects how the entity's large properties are stored.
type pointerProbe struct {
	key   tables.Key
	seen  map[string]tables.Value // stored values, by property
	noted bool                    // some entity was read, perhaps another one
}

type pointerProbeKey struct{}

func (g *pointerProbe) note(property string, key tables.Key, v tables.Value) {
	g.noted = true
	if key == g.key {
		g.seen[property] = v
	}
}

// probe returns the pointer that a row has now, nil for none; found is false if the row does not exist, or has
// another entity. The parameter read is a function that reads the row. probe ignores errors in decoding the row's
// other properties.
func (x *spill) probe(ctx context.Context, key tables.Key, read func(context.Context) error) (ptr *pointer, found bool, err error) {
	g := &pointerProbe{key: key, seen: map[string]tables.Value{}}
	err = read(context.WithValue(ctx, pointerProbeKey{}, g))
	v, seen := g.seen[x.name]
	var e *tables.Error
	switch {
	case seen:
		ptr, err = x.pointerIn("Load", key, v)
		return ptr, true, err
	case errors.Is(err, tables.ErrNotFound) && !g.noted && errors.As(err, &e) && e.Pattern == "":
		return nil, false, nil
	case err == nil && g.noted:
		return nil, false, nil // the copy now belongs to another entity
	case err == nil:
		err = errors.New("the read did not return the stored form of the property")
	}
	return nil, false, err
}

// probeRow calls probe for the entity's own row. Requests: 1.
func (x *spill) probeRow(ctx context.Context, key tables.Key) (*pointer, bool, error) {
	return x.probe(ctx, key, func(ctx context.Context) error {
		_, err := x.host.Get(ctx, key)
		return err
	})
}
