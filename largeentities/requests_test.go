package largeentities_test

import (
	"context"
	"io"
	"slices"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestRequestCounts holds what the package comment says.
func TestRequestCounts(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	requests := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), requests)
	w := (&world{}).open(t, s)
	p := assert.Must[*process](t)(w.start(&counted))
	e, small := with(1), with(2)
	e.Photo, small.Photo = large("a"), []byte("small")
	for _, step := range []struct {
		name string
		want int
		do   func() error
	}{
		{"Insert, all small", 1, func() error { return p.repo.Insert(ctx, small) }},
		{"Insert", 2, func() error { return p.repo.Insert(ctx, e) }},
		{"Replace, same value", 1, func() error { e.Note = "again"; return p.repo.Replace(ctx, e) }},
		{"Get", 2, func() error { _, err := p.repo.Get(ctx, at(1)); return err }},
		{"Replace, another value", 3, func() error { e.Photo = large("b"); return p.repo.Replace(ctx, e) }},
		{"Merge, another value", 5, func() error { e.Photo = large("c"); return p.repo.Merge(ctx, e, "Photo") }},
		{"Merge, another property", 3, func() error { e.Note = "more"; return p.repo.Merge(ctx, e, "Note") }},
		{"Replace, small", 2, func() error { e.Photo = []byte("small"); return p.repo.Replace(ctx, e) }},
		{"Replace, large", 2, func() error { e.Photo = large("d"); return p.repo.Replace(ctx, e) }},
		{"Delete", 2, func() error { return p.repo.Delete(ctx, e) }},
		{"Insert of a Stream", 2, func() error {
			e.Photo, e.Video = nil, largeentities.NewStreamBytes(large("v"), nil)
			return p.repo.Insert(ctx, e)
		}},
		{"Get with a Stream", 1, func() error { _, err := p.repo.Get(ctx, at(1)); return err }},
		{"Open", 1, func() error {
			r, err := e.Video.Open(ctx)
			if err == nil {
				_, err = io.Copy(io.Discard, r)
				r.Close()
			}
			return err
		}},
		{"Merge, another Stream", 5, func() error {
			e.Video = largeentities.NewStreamBytes(large("w"), nil)
			return p.repo.Merge(ctx, e, "Video")
		}},
		{"Replace, same Stream", 1, func() error { return p.repo.Replace(ctx, e) }},
	} {
		requests.Reset()
		if err := step.do(); err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if got := requests.Count(); got != step.want {
			t.Errorf("%s: %d requests, want %d: %v", step.name, got, step.want, requests.Kinds())
		}
	}
	if _, err := w.check(ctx, s); err != nil {
		t.Error(err)
	}
}
