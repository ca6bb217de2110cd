package largeentities

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"golang.org/x/sync/errgroup"

	"github.com/tablepatterns/tablepatterns/internal/blobowner"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/pace"
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
	Deleted    int   // blobs that Sweep has deleted or, with DryRun, would delete
	Bytes      int64 // total size of the blobs that Deleted counts
	Foreign    int   // without a Deadline, or stored by another program, for another table, or for a row of this table that is no entity of the repository; not deleted
	Failed     int   // their entity could not be read, or the service refused the delete, for example because of a lease; LastFailure is the last error
	// LastFailure is the error of the blob that failed last.
	LastFailure error
	// Resume is the token for SweepOptions.Resume, which continues after the last finished page; "" if the sweep is complete.
	Resume string
}

// Sweep deletes blobs of the property that no entity points at: those of processes that died during a change, and of changes with an
// unknown outcome. Run it from time to time, such as once a day. It is safe while programs write:
//
//   - A listing includes a blob after the request that completes the blob was served. Its writer sends the
//     transaction that points at it within 5/6 of the writer's Deadline by the writer's clock, or never.
//     The blob's metadata holds the Deadline.
//   - Sweep examines a blob when it is older than Grace and than 7/6 of its Deadline by the service's clock, and then reads its
//     entity. By then the transaction has arrived, or never will, if clocks run at the same speed to within a sixth and a request
//     arrives within a sixth of the Deadline after it was sent.
//   - A later change keeps a pointer only under the ETag of a row that holds it, so a pointer that was
//     removed from the row never comes back.
//   - Sweep deletes a blob only under the ETag that the listing returned.
//
// You can stop Sweep at any time and continue with Resume. Requests: 1 for each 5,000 blobs, 1 for each entity whose
// blob is older than Grace (2 if the entity does not exist), 1 for each deleted blob; up to 8 at once.
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

// sweepsAtOnce is how many entities Sweep examines at the same time.
const sweepsAtOnce = 8

// sweepPage examines a page of blobs; now is the time of its listing. An entity's blobs follow each other in the listing, so the entity is
// read once.
func (x *spill) sweepPage(ctx context.Context, o SweepOptions, items []*container.BlobItem, now time.Time, report *SweepReport) error {
	var entities [][]candidate
	for _, item := range items {
		report.Listed++
		c, ok := x.candidateOf(item)
		switch last := len(entities) - 1; {
		case !ok || c.term == 0:
			report.Foreign++
		case now.Sub(c.stored) < o.Grace || !lease.Expired(c.stored, now, c.term):
			report.Young++
		case last >= 0 && entities[last][0].key == c.key:
			entities[last] = append(entities[last], c)
		default:
			entities = append(entities, []candidate{c})
		}
	}
	var mu sync.Mutex
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(sweepsAtOnce)
	for _, blobs := range entities {
		group.Go(func() error {
			found := x.sweepEntity(ctx, o, blobs)
			mu.Lock()
			defer mu.Unlock()
			report.add(&found)
			return ctx.Err()
		})
	}
	return group.Wait()
}

// sweepEntity deletes those of an entity's blobs at which it does not point.
func (x *spill) sweepEntity(ctx context.Context, o SweepOptions, blobs []candidate) (r SweepReport) {
	foreign := false
	ptr, found, err := x.probeRow(ctx, blobs[0].key)
	if err == nil && !found {
		foreign, err = x.ofOther(ctx, blobs[0].key)
	}
	for _, c := range blobs {
		failure := err
		switch {
		case failure != nil:
		case foreign:
			r.Foreign++
		case ptr != nil && ptr.name == c.name:
			r.Referenced++
		default:
			failure = x.sweepOne(ctx, o, c, &r)
		}
		if failure != nil && ctx.Err() == nil {
			r.Failed++
			r.LastFailure = fmt.Errorf("blob %s: %w", c.name, failure)
			x.blobs.signals.BlobLeft(ctx, x.blobs.containerName(), failure)
		}
	}
	return r
}

// add adds what was found for one entity.
func (r *SweepReport) add(other *SweepReport) {
	r.Young, r.Referenced, r.Deleted, r.Bytes = r.Young+other.Young, r.Referenced+other.Referenced, r.Deleted+other.Deleted, r.Bytes+other.Bytes
	r.Foreign, r.Failed, r.LastFailure = r.Foreign+other.Foreign, r.Failed+other.Failed, cmp.Or(other.LastFailure, r.LastFailure)
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

// sweepOne deletes a blob at which its entity does not point.
func (x *spill) sweepOne(ctx context.Context, o SweepOptions, c candidate, r *SweepReport) error {
	if !o.DryRun {
		err := x.blobs.remove(ctx, "Sweep", c.name, c.etag)
		if isReplaced(err) {
			r.Young++ // the writer of the blob has renewed it
			return nil
		}
		if err != nil {
			return err
		}
	}
	r.Deleted++
	r.Bytes += c.bytes
	return nil
}

// pointerProbe marks a read of an entity that reads no blob, and collects how the entity's large properties are stored.
type pointerProbe struct {
	key  tables.Key
	seen map[string]tables.Value // stored values, by property
}

type pointerProbeKey struct{}

func (g *pointerProbe) note(property string, key tables.Key, v tables.Value) {
	if key == g.key {
		g.seen[property] = v
	}
}

// probeRow returns the pointer that an entity has now, nil for none; found is false if the entity does not exist. It ignores errors in decoding
// the entity's other properties. Requests: 1.
func (x *spill) probeRow(ctx context.Context, key tables.Key) (ptr *pointer, found bool, err error) {
	g := &pointerProbe{key: key, seen: map[string]tables.Value{}}
	_, err = x.host.Get(context.WithValue(ctx, pointerProbeKey{}, g), key)
	v, seen := g.seen[x.name]
	var e *tables.Error
	switch {
	case seen:
		ptr, err = x.pointerIn("Load", key, v)
		return ptr, true, err
	case errors.Is(err, tables.ErrNotFound) && len(g.seen) == 0 && errors.As(err, &e) && e.Pattern == "": // not because a pattern has found nothing
		return nil, false, nil
	case err == nil:
		err = errors.New("the read did not return the stored form of the property")
	}
	return nil, false, err
}
