package widentities_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// numbered is a version of the one profile: every property says which.
func numbered(version int) *profile {
	p := &profile{Team: "red", ID: 1, Email: "p1@contoso.com", More: map[string]tables.Value{}}
	for i := range 400 + version%3*200 {
		p.More[fmt.Sprintf("ThisIsThePropertyThatHasTheNumber%03d", i)] = tables.Int32(int32(version))
	}
	return p
}

// whole reports whether all properties are of one version.
func whole(p *profile) (version int, err error) {
	number, ok := p.More["ThisIsThePropertyThatHasTheNumber000"].Int()
	if version = int(number); !ok {
		return 0, errors.New("the first property is missing")
	}
	want := numbered(version)
	if !maps.Equal(p.More, want.More) {
		return 0, fmt.Errorf("a part of version %d and a part of another", version)
	}
	return version, nil
}

// TestNoTornRead (more of it: TORN_READS=100000) reads an entity of several rows again and again while it is replaced and merged, with pages of a single row
// and empty pages between, and never sees parts of two versions, nor versions in the wrong order.
func TestNoTornRead(t *testing.T) {
	reads := int64(1_000)
	switch {
	case harness.Shortened():
		reads = 500
	case harness.Thorough():
		reads = 20_000
	}
	if given := os.Getenv("TORN_READS"); given != "" {
		assert.Check(t, assert.Err(fmt.Sscan(given, &reads)))
	}
	s := storagetest.Simulator(t, nil)
	p, table := open(t, s)
	assert.Check(t, p.profiles.Insert(t.Context(), numbered(0)))
	s.SetChaos(storagetest.Chaos{EmptyPages: 0.1})
	narrow := s.WithTransport(func(inner policy.Transporter) policy.Transporter { return onePerPage{inner} })
	var done, seen, refused atomic.Int64
	var running sync.WaitGroup
	for range 2 {
		running.Go(func() {
			reader, err := start(narrow, table)
			if err != nil {
				t.Error(err)
				return
			}
			last := 0
			for n := done.Add(1); n <= reads && !t.Failed(); n = done.Add(1) {
				got, err := read(t.Context(), reader, n)
				if errors.Is(err, tables.ErrConflict) {
					refused.Add(1) // replaced during each attempt, and it says so
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				version, err := whole(got)
				if err != nil || version < last {
					t.Errorf("version %d after %d: %v", version, last, err)
					return
				}
				if last != version {
					seen.Add(1)
				}
				last = version
			}
		})
	}
	writes := 0
	for before := int64(-1); done.Load() < reads && !t.Failed(); before = done.Load() {
		for done.Load() < before+2 && !t.Failed() {
			time.Sleep(50 * time.Microsecond) // a writer without pause leaves readers nothing but refusals
		}
		v := assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(1)))
		writes++
		v.More = numbered(writes).More
		assert.Check(t, p.profiles.Replace(t.Context(), v))
	}
	running.Wait()
	t.Logf("%d reads, %d writes, %d new versions seen, %d reads refused", reads, writes, seen.Load(), refused.Load())
	if seen.Load() < reads/100 || refused.Load() > reads/10 {
		t.Error("readers and writer did not meet")
	}
}

// onePerPage has every query answered by pages of a single row.
type onePerPage struct{ inner policy.Transporter }

func (o onePerPage) Do(req *http.Request) (*http.Response, error) {
	if query := req.URL.Query(); query.Has("$filter") {
		query.Set("$top", "1")
		req.URL.RawQuery = query.Encode()
	}
	return o.inner.Do(req)
}

// read reads the profile in one of the ways that there are.
func read(ctx context.Context, p *process, n int64) (*profile, error) {
	if n%2 == 0 {
		return p.profiles.Get(ctx, at(1))
	}
	return p.profiles.Query().Partition("red").First(ctx)
}
