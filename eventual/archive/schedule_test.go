package archive_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	mathrand "math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestScheduleMover: writers that insert, update, delete, insert again and ask, often twice and late, and that update and delete
// what they find at the destination, beside three workers, whose messages appear again while they are at work, and all of whose
// calls fail and whose processes die. In the end each entity is in exactly one place with its last content unless a poisoned
// message says that both ends were changed, and none was touched that nobody asked for.
func TestScheduleMover(t *testing.T) {
	for _, toBlobs := range []bool{false, true} {
		name := map[bool]string{false: "to a repository", true: "to a container"}[toBlobs]
		var moved, deleted, touched, copies, both int
		explore.Schedules(t, explore.ScheduleCase{Name: name, Seeds: harness.Seeds(250), Pauses: []time.Duration{time.Second, moverVisibility + time.Second},
			Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
				rng := mathrand.New(mathrand.NewPCG(harness.ScheduleSeed(), 0))
				o := office{toBlobs: toBlobs, replaces: rng.IntN(2) == 0}
				b := &book{office: newOffice(t, s, o), lives: map[string]*life{}, rate: []float64{0, 0.1, 0.3}[rng.IntN(3)]}
				stage := explore.Stage{Check: func(ctx context.Context, s *storagetest.Service, errs []error) error {
					if err := errors.Join(errs...); err != nil {
						return err
					}
					if err := b.recover(ctx, s); err != nil {
						return err
					}
					err := b.check(ctx, s)
					moved, deleted, touched, copies = moved+b.moved, deleted+b.deleted, touched+len(b.lives), copies+b.copies
					if b.bothChanged {
						both++
					}
					return err
				}}
				for range 3 {
					stage.Actors = append(stage.Actors, b.processes(rng.Uint64(), b.write))
				}
				for range 3 {
					stage.Workers = append(stage.Workers, b.processes(rng.Uint64(), b.work))
				}
				return stage
			}})
		t.Logf("%s: %d entities, %d in the archive in the end, %d deleted by writers, %d changes of copies, both ends changed in %d schedules", name, touched, moved, deleted, copies, both)
		if copies == 0 {
			t.Errorf("%s: nobody changed a copy", name)
		}
	}
}

// life is what the writers know of an entity from its insert to its end.
type life struct {
	number     int
	key        tables.Key
	sure       bool            // it was surely inserted
	asked      bool            // somebody may have asked for its move
	ended      bool            // somebody may have deleted it
	deleted    bool            // somebody has surely deleted it
	wroteCopy  bool            // somebody may have changed its copy
	poisoned   bool            // an entry of the poison queue is about its key, in the end
	superseded map[string]bool // the notes that an update has surely replaced
}

// book is what all writers know. Every entity has a Life of its own, and every write a Note of its own.
type book struct {
	*office
	rate float64

	mu    sync.Mutex
	lives map[string]*life
	notes int

	moved, deleted, copies int
}

const moverClerks, moverWrites = 2, 12

// processes is an actor whose processes die now and then; each has a successor, until one says that all is done.
func (b *book) processes(seed uint64, do func(ctx context.Context, p *officer, rng *mathrand.Rand, written *int) error) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		written := 0
		for process := uint64(0); ctx.Err() == nil; process++ {
			rng := mathrand.New(mathrand.NewPCG(seed, process))
			faulty, calls := s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
				switch n := rng.Float64(); {
				case n < b.rate/10:
					return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
				case n < b.rate:
					faults := storagetest.FaultsOf(call.Kind)
					return faults[rng.IntN(len(faults))]
				}
				return nil
			}))
			p, err := b.start(faulty)
			if err != nil {
				return err
			}
			living, cancel := calls.Context(ctx)
			err = do(living, p, mathrand.New(mathrand.NewPCG(seed, ^process)), &written)
			cancel()
			if !calls.Dead() {
				return err
			}
		}
		return nil
	}
}

// work handles what is visible, again and again.
func (b *book) work(ctx context.Context, p *officer, _ *mathrand.Rand, _ *int) error {
	for ctx.Err() == nil {
		_, _ = p.work(ctx, 5)
		select {
		case <-ctx.Done():
		case <-time.After(time.Second):
		}
	}
	return nil
}

// write makes changes, until there are enough or the process is dead.
func (b *book) write(ctx context.Context, p *officer, rng *mathrand.Rand, written *int) error {
	var known []*clerk // as they were, for asking late
	for ; *written < moverWrites && ctx.Err() == nil; *written++ {
		id := rng.IntN(moverClerks)
		if len(known) > 0 && rng.IntN(6) == 0 {
			b.ask(ctx, p, known[rng.IntN(len(known))])
			continue
		}
		if rng.IntN(5) == 0 {
			b.changeCopy(ctx, p, rng, &clerk{Department: "Sales", ID: id})
			continue
		}
		c, err := p.current.Get(ctx, clerkKey(&clerk{Department: "Sales", ID: id}))
		switch {
		case errors.Is(err, tables.ErrNotFound):
			c = b.insert(ctx, p, id)
		case err != nil:
			continue
		case rng.IntN(8) == 0:
			b.remove(ctx, p, c)
			continue
		case rng.IntN(2) == 0:
			b.update(ctx, p, c)
		default:
			b.ask(ctx, p, c)
		}
		if c != nil && c.Incarnation() != "" {
			was := *c
			known = append(known, &was)
		}
	}
	return nil
}

// fresh returns a note that no other write has.
func (b *book) fresh() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes++
	return fmt.Sprint("note-", b.notes)
}

// of runs a function on a life with the book locked: for no storage call.
func (b *book) of(c *clerk, f func(l *life)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	f(b.lives[c.Life])
}

func (b *book) insert(ctx context.Context, p *officer, id int) *clerk {
	note := b.fresh()
	c := &clerk{Department: "Sales", ID: id, Life: "life of " + note, Note: note, Email: fmt.Sprintf("%s@contoso.com", note)}
	b.mu.Lock()
	b.lives[c.Life] = &life{number: b.notes, key: clerkKey(c), superseded: map[string]bool{}}
	b.mu.Unlock()
	err := p.current.Insert(ctx, c)
	b.of(c, func(l *life) { l.sure = err == nil })
	if err != nil {
		return nil
	}
	return c
}

func (b *book) update(ctx context.Context, p *officer, c *clerk) {
	old := c.Note
	_ = rewrite(b.fresh())(c)
	if p.current.Replace(ctx, c) == nil {
		b.of(c, func(l *life) { l.superseded[old] = true })
	}
}

func (b *book) remove(ctx context.Context, p *officer, c *clerk) {
	was := *c
	err := p.current.Delete(ctx, c)
	if err == nil || storageUnsure(err) {
		// A delete whose response was lost counts as made if the entity is gone by then, also where a mover has moved it.
		b.of(&was, func(l *life) { l.ended, l.deleted = true, l.deleted || err == nil && b.rate == 0 })
	}
}

// changeCopy updates or deletes what is in the archive.
func (b *book) changeCopy(ctx context.Context, p *officer, rng *mathrand.Rand, of *clerk) {
	if b.toBlobs {
		b.changeBlob(ctx, p, rng, of)
		return
	}
	c, err := p.archive.Get(ctx, clerkKey(of))
	if err != nil {
		return
	}
	was := *c
	b.copyWritten(&was)
	if rng.IntN(3) == 0 {
		b.copyDeleted(&was, p.archive.Delete(ctx, c))
		return
	}
	_ = rewrite(b.fresh())(c)
	b.copyUpdated(&was, p.archive.Replace(ctx, c))
}

// changeBlob is changeCopy in a container.
func (b *book) changeBlob(ctx context.Context, p *officer, rng *mathrand.Rand, of *clerk) {
	c, at, err := p.readBlob(ctx, of)
	if err != nil {
		return
	}
	b.copyWritten(c)
	client := blobstorage.Container(p.queue.Account(), p.container).NewBlockBlobClient(clerkBlob(of))
	if rng.IntN(3) == 0 {
		_, err = client.Delete(ctx, &blob.DeleteOptions{AccessConditions: sameBlob(at.ETag)})
		b.copyDeleted(c, err)
		return
	}
	options := &blockblob.UploadOptions{AccessConditions: sameBlob(at.ETag)}
	if rng.IntN(2) == 0 {
		options.Metadata = at.Metadata
	}
	text := bytes.ReplaceAll(at.text, []byte(`"Note":"`+c.Note+`"`), []byte(`"Note":"`+b.fresh()+`"`))
	_, err = client.Upload(ctx, streaming.NopCloser(bytes.NewReader(text)), options)
	b.copyUpdated(c, err)
}

func (b *book) copyWritten(c *clerk) {
	b.of(c, func(l *life) { l.wroteCopy = true })
	b.mu.Lock()
	defer b.mu.Unlock()
	b.copies++
}

func (b *book) copyUpdated(was *clerk, err error) {
	if err == nil {
		b.of(was, func(l *life) { l.superseded[was.Note] = true })
	}
}

func (b *book) copyDeleted(was *clerk, err error) {
	var answer *azcore.ResponseError
	if err == nil || storageUnsure(err) || b.toBlobs && !(errors.As(err, &answer) && answer.StatusCode < 500) {
		b.of(was, func(l *life) { l.ended, l.deleted = true, l.deleted || err == nil })
	}
}

func (b *book) ask(ctx context.Context, p *officer, c *clerk) {
	b.of(c, func(l *life) { l.asked = true })
	_ = p.mover.Move(ctx, c)
}

// storageUnsure reports whether a write with this error may have been applied.
func storageUnsure(err error) bool {
	return errors.Is(err, tables.ErrUnknownOutcome) || errors.Is(err, storagetest.ErrDied) || errors.Is(err, context.Canceled)
}

// check looks at all that is there, and at all that should be.
func (b *book) check(ctx context.Context, s *storagetest.Service) error {
	p, err := b.start(s)
	if err != nil {
		return err
	}
	poisoned, err := p.queue.Poison().Peek(ctx, 32)
	if err != nil {
		return err
	}
	var reasons []string
	for _, e := range poisoned {
		reasons = append(reasons, fmt.Sprintf("%s of %s", e.Reason, e.Body()))
	}
	at := map[string]places{}
	for id := range moverClerks {
		found, err := p.find(ctx, &clerk{Department: "Sales", ID: id})
		if err != nil {
			return err
		}
		if c := found.current; c != nil {
			at[c.Life] = places{current: c, archived: at[c.Life].archived}
		}
		if c := found.archived; c != nil {
			at[c.Life] = places{current: at[c.Life].current, archived: c}
			b.moved++
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b.lives)) {
		l := b.lives[name]
		if l.ended {
			b.deleted++
		}
		l.poisoned = slices.ContainsFunc(poisoned, func(e eventual.PoisonMessage) bool { return strings.Contains(e.Reason, l.key.Row) })
		if err := b.judge(l, at[name]); err != nil {
			return fmt.Errorf("%s of %v: %w: %v; %+v; rate %v, replaces %v, poison %v", name, l.key, err, at[name], *l, b.rate, b.replaces, reasons)
		}
	}
	return p.checkRows(ctx)
}

// judge tells what is wrong with where a life is in the end.
func (b *book) judge(l *life, at places) error {
	poisoned := b.bothChanged && l.wroteCopy
	switch {
	case at.current != nil && at.archived != nil && l.poisoned && (poisoned || b.rate > 0):
		return nil // without a change of the copy: the insert came twice, the second time after the move
	case poisoned && b.toBlobs && b.replaces:
		return nil // who puts the message back has the blob replaced, if it lost its metadata
	case !poisoned && l.deleted && (at.current != nil || at.archived != nil):
		return errors.New("somebody has deleted it, and it is there")
	case at.current != nil && at.archived != nil:
		return errors.New("in both places")
	case at.archived != nil && !l.asked:
		return errors.New("moved, and nobody asked")
	case at.current != nil && l.superseded[at.current.Note]:
		return errors.New("an update was undone")
	case at.archived != nil && l.superseded[at.archived.Note] && !l.ended:
		return errors.New("an update was lost in the move") // of one that was deleted the copy may be older
	case at.current == nil && at.archived == nil && l.sure && !l.ended && !b.overwritten(l):
		return errors.New("in neither place")
	}
	return nil
}

// overwritten reports whether a mover may have written a later life over this one, as it should.
func (b *book) overwritten(l *life) bool {
	for _, other := range b.lives {
		if b.replaces && l.asked && other.asked && other.key == l.key && other != l {
			return true
		}
	}
	return false
}
