package largeentities_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// withAll is an employee whose three values are in blobs.
func withAll(id int) *employee {
	e := with(id)
	e.Photo, e.CV, e.Video = large("a"), string(large("b")), largeentities.NewStreamBytes(large("c"), nil)
	return e
}

// TestForgedPointer: a row that points at a blob of another entity, as somebody with write access to one partition can
// store, gives nothing of that blob away, and no change of the row deletes it.
func TestForgedPointer(t *testing.T) {
	t.Parallel() // on Azurite it waits until messages appear again
	ctx := context.Background()
	for name, forge := range map[string]func(rows *tables.Rows[tables.Entity], victim, own *tables.Entity){
		"the victim's pointers": func(_ *tables.Rows[tables.Entity], victim, own *tables.Entity) {
			for _, property := range []string{"Photo", "CV", "Video"} {
				own.Set(property, victim.Get(property))
			}
		},
		"a way up": func(_ *tables.Rows[tables.Entity], victim, own *tables.Entity) {
			for _, property := range []string{"Photo", "CV", "Video"} {
				of, mine := textIn(victim.Get(property)), textIn(own.Get(property))
				blob := strings.Fields(mine)[3]
				up := blob[:strings.LastIndex(blob, "/")] + "/../../../" + strings.Fields(of)[3]
				own.Set(property, like(own.Get(property), strings.Replace(of, strings.Fields(of)[3], up, 1)))
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := storagetest.Open(t)
			w := (&world{}).open(t, s)
			p := assert.Must[*process](t)(w.start(s))
			ok(t, p.repo.Insert(ctx, withAll(1)), p.repo.Insert(ctx, withAll(2)), p.repo.Insert(ctx, withAll(3)), p.repo.Insert(ctx, withAll(4)))
			rows := p.account.Table(w.table).Entities()
			stored := assert.Must[*tables.Entity](t)(rows.Get(ctx, at(1)))
			victims := map[string]string{}
			for _, property := range []string{"Photo", "CV", "Video"} {
				victims[strings.Fields(textIn(stored.Get(property)))[3]] = ""
			}
			for id := 2; id <= 4; id++ {
				own := assert.Must[*tables.Entity](t)(rows.Get(ctx, at(id)))
				forge(rows, stored, own)
				client := p.account.TableService().NewClient(w.table)
				_, err := client.UpdateEntity(ctx, assert.Must[[]byte](t)(json.Marshal(rawOf(own))), nil)
				ok(t, err)
			}
			reads := &storagetest.RequestCounter{}
			counted := *s
			counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), reads)
			q := assert.Must[*process](t)(w.start(&counted))
			if e, err := q.repo.Get(ctx, at(2)); !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("Get of a forged row gives %v, %v", e, err)
			}
			for kind := range reads.Kinds() {
				if strings.Contains(fmt.Sprint(kind), "Blob") {
					t.Errorf("a forged pointer was followed: %v", reads.Kinds())
				}
			}
			for _, property := range p.properties() {
				if signed, err := property.SignedURL(ctx, at(2), time.Now().Add(time.Hour)); err == nil {
					t.Errorf("SignedURL of a forged row gives %s", signed)
				}
			}
			// What repairs such a row takes the pointers away, and leaves the blobs that are not the entity's.
			discarded, err := largeentities.Discard(ctx, p.repo, at(2))
			ok(t, err)
			if len(discarded) != 3 {
				t.Errorf("Discard took away %v", discarded)
			}
			if err := p.repo.ReplaceUnconditional(ctx, withAll(3)); !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("ReplaceUnconditional of a forged row: %v", err)
			}
			if err := p.repo.DeleteUnconditional(ctx, at(4)); !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("DeleteUnconditional of a forged row: %v", err)
			}
			repaired := assert.Must[*employee](t)(p.repo.Get(ctx, at(2)))
			repaired.Photo = large("n")
			ok(t, p.repo.Replace(ctx, repaired), p.repo.Delete(ctx, repaired))
			left := assert.Must[map[string]string](t)(w.blobsIn(ctx, p))
			for blob := range victims {
				if _, there := left[blob]; !there {
					t.Errorf("blob %s of the victim is gone", blob)
				}
			}
			if e := assert.Must[*employee](t)(p.repo.Get(ctx, at(1))); !bytes.Equal(e.Photo, large("a")) {
				t.Errorf("the victim's photo is %q", e.Photo)
			}
		})
	}
}

// TestSharedPrefix: of two repositories with one container and one prefix, neither reads, signs or deletes the other's blobs of the same key,
// although their names are those of its own.
func TestSharedPrefix(t *testing.T) {
	t.Parallel() // on Azurite it waits until messages appear again
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{options: largeentities.Options{Prefix: "shared"}}).open(t, s)
	other := *w
	other.table = s.TableName(t)
	p, q := assert.Must[*process](t)(w.start(s)), assert.Must[*process](t)(other.start(s))
	photo := func(letter string) *employee {
		e := with(1)
		e.Photo, e.Video = large(letter), largeentities.NewStreamBytes(large(letter), nil)
		return e
	}
	ok(t, q.account.Table(other.table).Create(ctx), p.repo.Insert(ctx, photo("p")), q.repo.Insert(ctx, photo("q")))
	stored := assert.Must[*tables.Entity](t)(p.account.Table(w.table).Entities().Get(ctx, at(1)))
	_, err := q.account.TableService().NewClient(other.table).UpdateEntity(ctx, assert.Must[[]byte](t)(json.Marshal(rawOf(stored))), nil)
	ok(t, err)
	if e, err := q.repo.Get(ctx, at(1)); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("a blob of another table is read: %v, %v", e, err)
	}
	for _, property := range []*largeentities.Property[employee]{q.photo, q.video} {
		if signed, err := property.SignedURL(ctx, at(1), time.Now().Add(time.Hour)); !errors.Is(err, tables.ErrGarbled) {
			t.Errorf("a blob of another table is signed: %s, %v", signed, err)
		}
	}
	discarded, err := largeentities.Discard(ctx, q.repo, at(1))
	ok(t, err)
	if !slices.Contains(discarded, "Photo") {
		t.Errorf("Discard took away %v", discarded)
	}
	repaired := assert.Must[*employee](t)(q.repo.Get(ctx, at(1)))
	repaired.Video = largeentities.NewStreamBytes(large("n"), nil)
	ok(t, q.repo.Replace(ctx, repaired))
	left := assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
	if video, err := readAll(ctx, left.Video); err != nil || !bytes.Equal(left.Photo, large("p")) || !bytes.Equal(video, large("p")) {
		t.Errorf("the other table's values have changed: %v", err)
	}
}

// textIn is the text of a pointer, of either type.
func textIn(v tables.Value) string {
	if data, isBinary := v.Bytes(); isBinary {
		return string(data)
	}
	text, _ := v.Text()
	return text
}

// like makes a value of the same type as v.
func like(v tables.Value, text string) tables.Value {
	if _, isBinary := v.Bytes(); isBinary {
		return tables.Binary([]byte(text))
	}
	return tables.String(text)
}

// rawOf is the body of a merge that writes the pointers of an entity, past the library.
func rawOf(e *tables.Entity) map[string]any {
	raw := map[string]any{"PartitionKey": e.Key.Partition, "RowKey": e.Key.Row}
	for _, property := range []string{"Photo", "CV", "Video"} {
		v := e.Get(property)
		if data, isBinary := v.Bytes(); isBinary {
			raw[property], raw[property+"@odata.type"] = data, "Edm.Binary"
			continue
		}
		raw[property], _ = v.Text()
	}
	return raw
}

// TestBlobThatIsNoLongerOurs: a blob that has lost its metadata is not deleted with its entity. A line of the log names what was kept.
func TestBlobThatIsNoLongerOurs(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{}).open(t, s)
	var lines bytes.Buffer
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString,
		&tables.AccountOptions{ClientOptions: s.ClientOptions, Logger: slog.New(slog.NewTextHandler(&lines, nil))}))
	blobs := blobstorage.Container(account, w.container)
	repo := assert.Must[*patterns.Repository[employee]](t)(patterns.NewRepository(account.Table(w.table),
		patterns.Schema[employee]{Name: "Employees", Key: keyOf, Prefix: "empid"},
		largeentities.NewStream("Video", func(e *employee) *largeentities.Stream { return &e.Video }, blobs, &largeentities.Options{Threshold: threshold})))
	e := with(1)
	e.Video = largeentities.NewStreamBytes(large("v"), nil)
	ok(t, repo.Insert(ctx, e))
	page := assert.Must[container.ListBlobsFlatResponse](t)(blobs.NewListBlobsFlatPager(nil).NextPage(ctx))
	name := *page.Segment.BlobItems[0].Name
	_, err := blobs.NewBlobClient(name).SetMetadata(ctx, nil, nil)
	ok(t, err, repo.Delete(ctx, e))
	if _, err := blobs.NewBlobClient(name).GetProperties(ctx, nil); err != nil {
		t.Errorf("the blob: %v", err)
	}
	if !strings.Contains(lines.String(), "event=blob_kept") {
		t.Errorf("the log has no line:\n%s", lines.String())
	}
}
