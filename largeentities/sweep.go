package largeentities

import (
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
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// SweepOptions are the options of Property.Sweep; nil is the same as the zero value.
type SweepOptions struct {
	// Grace is how old a blob must be to be looked at (default 1 hour). Sweep waits longer where the blob's writer may take longer
	// to point at it: 7/6 of the Deadline that is stored with each blob. No Grace is too short to be safe.
	Grace time.Duration
	// DryRun deletes nothing, and counts what would be deleted as Deleted.
	DryRun bool
	// Resume goes on where an earlier run was when SweepReport.Resume was this text. One of another property is tables.ErrInvalid.
	Resume string
	// Progress is told after each page of at most 5,000 blobs.
	Progress func(SweepReport)
}

// SweepReport is what a sweep has done.
type SweepReport struct {
	Listed     int // blobs of the property
	Young      int // younger than Grace or than their writer's Deadline and a grace, or changed while they were looked at
	Referenced int // an entity points at them
	Held       int // an entity's copy in another partition does; its intent waits for a worker, or is poison
	Deleted    int
	Bytes      int64 // of those
	Foreign    int   // not written by this package for an entity of this table: they are left alone
	Undated    int   // stored by an earlier version, without a Deadline: it is unknown whether their writer is alive, and they are left alone
	Failed     int   // their entities could not be read; the last reason is LastFailure
	// LastFailure is the reason of the last of the Failed.
	LastFailure error
	// Resume is for SweepOptions.Resume, and goes on behind the last page that was done; "" at the end.
	Resume string
}

// Sweep deletes blobs of the property that no entity points at. There are such where an intent was lost: a message that was
// deleted or purged, or that stands on the poison queue. It is safe while programs write:
//
//   - a blob is seen from the request on that makes it whole, and the transaction that points at it is sent within 5/6 of the
//     Deadline of its writer, by the writer's clock, or never: the writer's lease is bounded by it. The blob says what the Deadline is;
//   - a blob is looked at when it is older than 7/6 of that, by the service's clock, and than Grace, and then its entity is read. So
//     the transaction has arrived by then, or never will, if clocks run alike to within a sixth and a request that was sent arrives
//     within a sixth of the Deadline;
//   - a later change keeps a pointer only under the ETag of a row that holds it, so what the row does not hold does not come back;
//   - it is deleted under the ETag that it was listed with.
//
// A copy of the entity in another partition can still point at the blob while the intent that brings it up to date waits for
// a worker. The copies under the keys that the entity has now are asked. One under a key that it no longer has is not found; a
// read through it then follows to the entity's own row. So sweep when the queue is empty, and the poison queue too, or give Grace
// the time in which it is looked after; where messages were lost, run Repository.Repair first, which removes such copies.
//
// It can be stopped at any time, and goes on by Resume. Requests: 1 for each 5,000 blobs, 1 for each entity whose blob is older than
// Grace, 1 for each blob that is deleted.
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
	if o.Grace == 0 {
		o.Grace = standardGrace
	}
	if o.Grace < 0 {
		return report, tables.Invalidf(op, "SweepOptions.Grace is %v; it must be 0 (meaning %v) or more", o.Grace, standardGrace)
	}
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
			return report, garbled(op, prefix, "a page of blobs without its date")
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

const tokenMark = "tps1"

// token makes the token of a marker. It is for sweeps of this property only.
func (x *spill[T]) token(marker string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(strings.Join([]string{tokenMark, x.blobs.prefix, marker}, keySeparator)))
}

func (x *spill[T]) openToken(token string) (marker string, err error) {
	if token == "" {
		return "", nil
	}
	raw, err := base64.RawURLEncoding.DecodeString(token)
	parts := strings.SplitN(string(raw), keySeparator, 3)
	if err != nil || len(parts) != 3 || parts[0] != tokenMark || parts[1] != x.blobs.prefix {
		return "", tables.Invalidf("Sweep", "the token is not from a Sweep of this property")
	}
	return parts[2], nil
}

// candidate is a blob of the property's own.
type candidate struct {
	name  string
	key   tables.Key // of its entity
	etag  azcore.ETag
	bytes int64

	stored time.Time     // or touched
	term   time.Duration // its writer's Deadline, 0 where it does not say
}

// sweepPage goes through a page of blobs that was answered at now. An entity's blobs follow each other, and are looked at with one
// read.
func (x *spill[T]) sweepPage(ctx context.Context, o SweepOptions, items []*container.BlobItem, now time.Time, report *SweepReport) error {
	var last struct {
		key   tables.Key
		known bool
		ptr   *pointer
		found bool
		err   error
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
			last.ptr, last.found, last.err = x.lookAt(ctx, c.key)
		}
		err := last.err
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
		}
	}
	return nil
}

// candidateOf judges a blob by its listing. ok is false for one that is not the property's own.
func (x *spill[T]) candidateOf(item *container.BlobItem) (c candidate, ok bool) {
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

// sweepOne deletes a blob that its entity does not point at, unless a copy does.
func (x *spill[T]) sweepOne(ctx context.Context, o SweepOptions, c candidate, found bool, report *SweepReport) error {
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
			report.Young++ // a writer has made it younger
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

// heldOutside reports whether one of the entity's copies in other partitions points at the blob. The entity is read again,
// with its large values left out, for the keys that its copies have now. Requests: 1, and 1 for each copy.
func (x *spill[T]) heldOutside(ctx context.Context, c candidate) (bool, error) {
	contributing := slices.DeleteFunc(x.host.Patterns(), func(p driver.Implementation[T]) bool { return p.Outside == nil })
	if len(contributing) == 0 {
		return false, nil
	}
	g := &glance{key: c.key, seen: map[string]tables.Value{}}
	v, err := x.host.Get(context.WithValue(ctx, glanceKey{}, g), c.key)
	if errors.Is(err, tables.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	for _, p := range contributing {
		copies, err := p.Outside.Copies(v)
		if err != nil {
			continue // what its keys refuse has no copies
		}
		for _, one := range copies {
			ptr, there, err := x.look(ctx, c.key, func(ctx context.Context) error {
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
