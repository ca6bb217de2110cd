package keyrange_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/keyrange"
	goroutines "github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { goroutines.Main(m) }

// shelf is a partition with rows "0000" to "0999" and every third of them asked for, or others.
type shelf struct {
	mu          sync.Mutex
	pages, ones int
	seen        map[keyrange.Key]int
	fails       error
}

func (s *shelf) reader(rows int) keyrange.Reader {
	return keyrange.Reader{
		Page: func(_ context.Context, partition string, span compoundkey.Span, size int) (last string, more bool, err error) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.pages++
			n := 0
			for i := range rows {
				row := fmt.Sprintf("%04d", i)
				if !span.Contains(row) {
					continue
				}
				if n++; n > size {
					return last, true, s.fails
				}
				s.seen[keyrange.Key{Partition: partition, Row: row}]++
				last = row
			}
			return last, false, s.fails
		},
		One: func(_ context.Context, key keyrange.Key) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.ones++
			s.seen[key]++
			return s.fails
		},
	}
}

// TestRead: rows that lie close together are read by few pages, and each key is read.
func TestRead(t *testing.T) {
	for _, c := range []struct {
		name                string
		rows, step, n, in   int
		mostPages, mostOnes int
	}{
		{"one key", 1000, 1, 1, 1, 0, 1},
		{"two keys", 1000, 1, 2, 1, 0, 2},
		{"all next to each other", 1000, 1, 500, 1, 1, 0},
		{"every third", 1000, 3, 300, 1, 3, 1},
		{"sparse", 1000, 300, 4, 1, 1, 4},
		{"ten partitions", 100, 1, 100, 10, 10, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &shelf{seen: map[keyrange.Key]int{}}
			var keys []keyrange.Key
			for p := range c.in {
				for i := range c.n {
					keys = append(keys, keyrange.Key{Partition: fmt.Sprint(p), Row: fmt.Sprintf("%04d", i*c.step)})
				}
			}
			assert.Check(t, s.reader(c.rows).Read(t.Context(), keys))
			for _, key := range keys {
				if s.seen[key] == 0 {
					t.Errorf("%v was not read", key)
				}
			}
			if s.pages > c.mostPages || s.ones > c.mostOnes {
				t.Errorf("%d pages and %d single reads", s.pages, s.ones)
			}
			s = &shelf{seen: map[keyrange.Key]int{}, fails: errors.New("unavailable")}
			assert.ErrorIs(t, s.reader(c.rows).Read(t.Context(), keys), s.fails)
			s = &shelf{seen: map[keyrange.Key]int{}}
			r := s.reader(c.rows)
			r.Unordered = true
			if err := r.Read(t.Context(), keys); err != nil || s.pages > 0 || s.ones != len(keys) {
				t.Errorf("without an order: %d pages, %d single reads, %v", s.pages, s.ones, err)
			}
		})
	}
}
