package archive_test

import (
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// forgeMove puts a message of the mover on the queue, as somebody with the right to add messages can.
func (p *officer) forgeMove(t testing.TB, key tables.Key, incarnation string, to ...string) {
	t.Helper()
	body := map[string]any{"partition": key.Partition, "row": key.Row, "incarnation": incarnation, "to": to}
	text := assert.Must[[]byte](t)(json.Marshal(map[string]any{"v": 1, "id": "FORGED", "type": "tablepatterns.move.archive-clerks", "sent": time.Now(), "body": body}))
	assert.Check(t, second(eventual.QueueService(p.queue.Account()).NewQueueClient(p.queue.Name()).EnqueueMessage(t.Context(), base64.StdEncoding.EncodeToString(text), nil)))
}

// everything is what both tables and the container hold, by key and ETag, and by name and ETag.
func (p *officer) everything(t testing.TB) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, table := range []string{p.office.current, p.office.archive} {
		for e, err := range p.queue.Account().Table(table).Entities().Query().AllowTableScan().All(t.Context()) {
			assert.Check(t, err)
			all[table+" "+e.Key.Partition+" "+e.Key.Row] = string(e.ETag)
		}
	}
	for pager := blobstorage.Container(p.queue.Account(), p.container).NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(t.Context())
		assert.Check(t, err)
		for _, b := range page.Segment.BlobItems {
			all[*b.Name] = string(*b.Properties.ETag)
		}
	}
	return all
}

// drainForged handles what is there to its end, also what a delivery has left hidden.
func drainForged(t testing.TB, s *storagetest.Service, p *officer) {
	t.Helper()
	for range 3 {
		assert.Must[any](t)(p.work(context.WithoutCancel(t.Context()), 2))
		s.Wait(2 * moverVisibility)
	}
}

// TestForgedMove: a message that nobody sent by Move moves no entity whose incarnation it does not name, writes, deletes and changes
// nothing else, wherever it says that the copy goes, and ends on the poison queue where it names an entity that is there.
func TestForgedMove(t *testing.T) {
	for name, o := range map[string]office{"rows": {}, "blobs": {toBlobs: true}, "blobs, replaced": {toBlobs: true, replaces: true}} {
		t.Run(name, func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			office := newOffice(t, s, o)
			p, ctx := office.open(t, s), t.Context()
			own, moved := june(), &clerk{Department: "Sales", ID: 7, Email: "moved@contoso.com", Life: "first", Note: "moved"}
			assert.Check(t, p.current.Insert(ctx, own))
			assert.Check(t, p.current.Insert(ctx, moved))
			gone := clerkKey(moved)
			assert.Check(t, p.mover.Move(ctx, moved))
			drainMoves(t, p)
			incarnation := own.Incarnation()
			putText(t, blobstorage.Container(p.queue.Account(), p.container), "backup/2026", "a backup")
			before := p.everything(t)
			for _, to := range [][]string{{"backup/2026"}, {clerkBlob(moved)}, {clerkBlob(own) + "x"}, {".."}, {"../" + p.office.container + "/backup/2026"}, {""}, {"Sales", gone.Row}, {"Sales", "empid_000008"}, {}} {
				p.forgeMove(t, clerkKey(own), incarnation, to...)
			}
			poisonable := 9
			for _, to := range [][]string{{"backup/2026"}, {clerkBlob(moved)}, {clerkBlob(own)}, {"Sales", gone.Row}, {"Sales", clerkKey(own).Row}} {
				p.forgeMove(t, clerkKey(own), "GUESSED", to...)
				p.forgeMove(t, gone, moved.Incarnation(), to...)
				p.forgeMove(t, gone, "GUESSED", to...)
			}
			drainForged(t, s, p)
			if after := p.everything(t); !maps.Equal(before, after) {
				t.Errorf("forged moves changed what is stored; before:\n%v\nafter:\n%v", before, after)
			}
			if n := len(entries(t, p.queue)); n < poisonable {
				t.Errorf("%d forged moves are on the poison queue, want at least %d", n, poisonable)
			}
			// The one that is right moves the entity: without SigningKeys nothing tells it from Move.
			to := []string{clerkBlob(own)}
			if !o.toBlobs {
				to = []string{"Sales", clerkKey(own).Row}
			}
			p.forgeMove(t, clerkKey(own), incarnation, to...)
			drainForged(t, s, p)
			wantPlaces(t, p, own, "", "first: hired")
		})
	}
}

// movedName is what the documentation of Mover says of the names of its rows.
func movedName(mover, table string, key tables.Key, incarnation string, to ...string) string {
	h := sha256.New()
	for _, s := range append([]string{mover, strings.ToLower(table), key.Partition, key.Row, incarnation}, to...) {
		fmt.Fprintf(h, "%d %s", len(s), s)
	}
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(h.Sum(nil)[:20])
}

// TestForgedMoverRows: rows of a mover that somebody else has written name another entity and another blob in vain. Whoever can write
// the rows of one partition has a move of an entity of that partition go wrong, and of no other.
func TestForgedMoverRows(t *testing.T) {
	for name, o := range map[string]office{"rows": {}, "blobs": {toBlobs: true}} {
		t.Run(name, func(t *testing.T) {
			s := storagetest.Simulator(t, nil)
			office := newOffice(t, s, o)
			p, ctx := office.open(t, s), t.Context()
			victim, waiting := &clerk{Department: "Works", ID: 1, Email: "victim@contoso.com", Life: "first", Note: "hired"}, june()
			archived := &clerk{Department: "Works", ID: 2, Email: "archived@contoso.com", Life: "first", Note: "archived"}
			assert.Check(t, p.current.Insert(ctx, victim))
			assert.Check(t, p.current.Insert(ctx, archived))
			assert.Check(t, p.mover.Move(ctx, archived))
			drainMoves(t, p)
			assert.Check(t, p.current.Insert(ctx, waiting))
			before := p.everything(t)
			to := []string{clerkBlob(waiting)}
			if !o.toBlobs {
				to = []string{"Sales", clerkKey(waiting).Row}
			}
			id := movedName("archive-clerks", p.office.current, clerkKey(waiting), waiting.Incarnation(), to...)
			stolen := before[clerkBlob(archived)] // the ETag of the victim's blob
			for table, words := range map[string][]string{p.office.current: {"moverecord_", "movetrace_"}, p.office.archive: {"movemark_"}} {
				for _, word := range words {
					row := &tables.Entity{Key: tables.Key{Partition: "Sales", Row: "\uFFFC" + word + id}}
					for property, value := range map[string]string{"Mover": "archive-clerks", "Table": p.office.current, "Partition": "Works", "Row": clerkKey(victim).Row,
						"Incarnation": victim.Incarnation(), "Source": string(victim.ETag), "Base": stolen, "Write": "FORGED"} {
						row.Set(property, tables.String(value))
					}
					row.Set("Version", tables.Int32(1))
					row.Set("Round", tables.Int32(2))
					assert.Check(t, p.queue.Account().Table(table).Entities().Insert(ctx, row))
				}
			}
			assert.Check(t, p.mover.Move(ctx, waiting))
			drainForged(t, s, p)
			after := p.everything(t)
			for at, etag := range before {
				if !strings.Contains(at, clerkKey(waiting).Row) && !strings.Contains(at, "june") && after[at] != etag {
					t.Errorf("%s was changed or deleted", at)
				}
			}
			for at := range after {
				if _, was := before[at]; !was && strings.Contains(at, "Works") {
					t.Errorf("%s was made", at)
				}
			}
		})
	}
}

// TestForgedDestination: a row whose properties lead to another partition of the archive is not moved there if Schema.MayName does not
// let it: Move refuses it, and a message that was right when it was sent ends on the poison queue. The case "open" shows that the
// attempt is one.
func TestForgedDestination(t *testing.T) {
	for name, mayName := range map[string]func(entity, other tables.Key) bool{"open": nil,
		"confined": func(entity, other tables.Key) bool { return entity.Partition == other.Partition }} {
		t.Run(name, func(t *testing.T) {
			s, ctx := storagetest.Simulator(t, nil), t.Context()
			p := newOffice(t, s, office{}).open(t, s)
			queue := assert.Must[*eventual.Queue](t)(eventual.NewQueue(p.queue.Account(), p.queue.Name(), nil)) // without the mover of p
			current := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(p.queue.Account().Table(p.office.current), patterns.Schema[clerk]{Key: clerkKey, MayName: mayName}))
			mover := assert.Must[*archive.Mover[clerk]](t)(archive.New(queue, "archive-clerks", current, archive.ToRepository(p.archive, func(c *clerk) { c.Department = c.Note }), &archive.Options{Replace: true}))
			victim := &clerk{Department: "Works", ID: 1, Email: "victim@contoso.com", Note: "Works"}
			assert.Check(t, p.archive.Insert(ctx, victim))
			forged := &clerk{Department: "Attacker", ID: 1, Note: "Attacker"}
			assert.Check(t, current.Insert(ctx, forged))
			p.forgeMove(t, clerkKey(forged), forged.Incarnation(), "Works", clerkKey(victim).Row)
			_, err := current.Update(ctx, clerkKey(forged), func(c *clerk) error { c.Note = "Works"; return nil })
			assert.Check(t, err)
			moveErr := mover.Move(ctx, assert.Must[*clerk](t)(current.Get(ctx, clerkKey(forged))))
			worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(queue, nil, &eventual.WorkerOptions{MaxDequeues: 1}))
			assert.Must[int](t)(worker.Drain(ctx))
			now := assert.Must[*clerk](t)(p.archive.Get(ctx, clerkKey(victim)))
			if kept := now.ETag == victim.ETag; kept != (mayName != nil) {
				t.Errorf("the victim's copy is %+v", now)
			}
			if mayName != nil && (!errors.Is(moveErr, tables.ErrInvalid) || !strings.Contains(moveErr.Error(), "Schema.MayName") || len(entries(t, p.queue)) != 1) {
				t.Errorf("Move: %v; %d on the poison queue", moveErr, len(entries(t, p.queue)))
			}
		})
	}
}
