package largeentities_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// swept is an operation on employee 223, who is there before where before is not nil. states are the texts of her before the
// operation, and after it was applied once and more often. Whatever is broken, rows and blobs agree after a sweep.
func swept(w world, before *employee, states []string, operate func(ctx context.Context, p *process) error) storagetest.SweepCase {
	return storagetest.SweepCase{World: func(t testing.TB, s *storagetest.Service) storagetest.World {
		w := w
		w.open(t, s)
		if before != nil {
			p, copied := assert.Must[*process](t)(w.start(s)), *before
			ok(t, p.repo.Insert(t.Context(), &copied))
		}
		var said harness.Attempts
		return storagetest.World{
			Operate: func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err == nil {
					err = operate(ctx, p)
				}
				said.Add(err)
				return err
			},
			Recover: w.sweep,
			Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
				found, err := w.check(ctx, s)
				if err != nil {
					return err
				}
				if r, err := w.sweepAll(ctx, s); err != nil || r.Listed != r.Referenced {
					return fmt.Errorf("a second sweep found %+v, %w", r, err)
				}
				return said.Fits(found[at(223)], states)
			},
		}
	}}
}

// update is an operation that reads and replaces.
func update(edit func(e *employee)) func(ctx context.Context, p *process) error {
	return func(ctx context.Context, p *process) error {
		_, err := p.repo.Update(ctx, at(223), func(e *employee) error { edit(e); return nil })
		return err
	}
}

// sweeps are the changes to break.
func sweeps(w world) map[string]storagetest.SweepCase {
	photo := func(letter, note string) *employee {
		e := with(223)
		e.Photo, e.Note, e.Email = large(letter), note, "jonesj"
		return e
	}
	small := photo("s", "first")
	small.Photo = []byte("s")
	video := with(223)
	video.Video = largeentities.NewStreamBytes(large("v"), nil)
	return map[string]storagetest.SweepCase{
		"Insert": swept(w, nil, []string{"", "first photo=a74 cv= video="}, func(ctx context.Context, p *process) error {
			return p.repo.Insert(ctx, photo("a", "first"))
		}),
		"InsertStream": swept(w, nil, []string{"", "first photo= cv= video=v74"}, func(ctx context.Context, p *process) error {
			e := with(223)
			e.Video = largeentities.NewStreamBytes(large("v"), nil)
			return p.repo.Insert(ctx, e)
		}),
		"Blocks": swept(w.inBlocks(), nil, []string{"", "first photo=a74 cv= video="}, func(ctx context.Context, p *process) error {
			return p.repo.Insert(ctx, photo("a", "first"))
		}),
		"Replace": swept(w, photo("a", "first"), []string{"first photo=a74 cv= video=", "again photo=b74 cv= video="}, update(func(e *employee) {
			e.Photo, e.Note = large("b"), "again"
		})),
		"Two": swept(w, photo("a", "first"), []string{"first photo=a74 cv= video=", "again photo=b74 cv=c74 video="}, update(func(e *employee) {
			e.Photo, e.CV, e.Note = large("b"), string(large("c")), "again"
		})),
		"Shrink": swept(w, photo("a", "first"), []string{"first photo=a74 cv= video=", "again photo=s1 cv= video="}, update(func(e *employee) {
			e.Photo, e.Note = []byte("s"), "again"
		})),
		"Grow": swept(w, small, []string{"first photo=s1 cv= video=", "again photo=b74 cv= video="}, update(func(e *employee) {
			e.Photo, e.Note = large("b"), "again"
		})),
		"Merge": swept(w, photo("a", "first"), []string{"first photo=a74 cv= video=", "first photo=b74 cv= video="}, func(ctx context.Context, p *process) error {
			e, err := p.repo.Get(ctx, at(223))
			if err != nil {
				return err
			}
			e.Photo = large("b")
			return p.repo.Merge(ctx, e, "Photo")
		}),
		"MergeStream": swept(w, video, []string{"first photo= cv= video=v74", "first photo= cv= video=w74"}, func(ctx context.Context, p *process) error {
			e, err := p.repo.Get(ctx, at(223))
			if err != nil {
				return err
			}
			e.Video = largeentities.NewStreamReader(bytes.NewReader(large("w")), nil)
			return p.repo.Merge(ctx, e, "Video")
		}),
		"Upsert": swept(w, photo("a", "first"), []string{"first photo=a74 cv= video=", "other photo=b74 cv= video="}, func(ctx context.Context, p *process) error {
			return p.repo.Upsert(ctx, photo("b", "other"))
		}),
		"Delete": swept(w, photo("a", "first"), []string{"first photo=a74 cv= video=", ""}, func(ctx context.Context, p *process) error {
			err := p.repo.DeleteUnconditional(ctx, at(223))
			return err
		}),
	}
}

// inBlocks is the world with blocks that are smaller than the values.
func (w world) inBlocks() world {
	w.options.BlockSize, w.options.Concurrency = 32, 1
	return w
}

// floors are the numbers of points that there were in the plain world.
func floors() map[string]int {
	return map[string]int{"Insert": 56, "InsertStream": 56, "Blocks": 140, "Two": 176, "Shrink": 120, "Grow": 88, "Merge": 212, "MergeStream": 176, "Upsert": 148, "Delete": 120}
}

// TestFaults breaks every change at every storage call, in every way.
func TestFaults(t *testing.T) {
	for _, w := range []struct {
		name string
		world
	}{{"plain", world{}}, {"indexes", world{inIndex: true, outIndex: true}}} {
		for name, c := range sweeps(w.world) {
			// A Replace in the plain world is a part of Two.
			chosen := (w.name == "plain") != (name == "Replace")
			if race.Enabled {
				chosen = w.name == "plain" && name == "Shrink"
			} else if testing.Short() {
				chosen = w.name == "plain" && slices.Contains([]string{"Insert", "MergeStream", "Delete"}, name)
			}
			if !chosen {
				continue
			}
			if c.Every = harness.SweepEvery(); w.name == "plain" {
				c.Floor = floors()[name]
			}
			t.Run(w.name+"/"+name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}
