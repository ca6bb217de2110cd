package rangescan

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/odata"
)

// shelf is a sorted table that answers a page in one second of the bubble's clock.
type shelf struct {
	rows     []Key
	size     int // of a page
	requests int
	some     bool // a leg begins with an empty page that has a token
}

func compareKeys(a, b Key) int {
	if c := compoundkey.Compare(a.Partition, b.Partition); c != 0 {
		return c
	}
	return compoundkey.Compare(a.Row, b.Row)
}

func newShelf(size int, rows []Key) *shelf {
	slices.SortFunc(rows, compareKeys)
	return &shelf{rows: slices.Compact(rows), size: size}
}

func (s *shelf) after(p Point) int {
	i, _ := slices.BinarySearchFunc(s.rows, p, func(k Key, p Point) int {
		if p.covers(k) {
			return -1
		}
		return 1
	})
	return i
}

// fetch reads a page; its token is the index of a row.
func (s *shelf) fetch(ctx context.Context, leg Leg, token string, accept func(Key) bool) (page []Key, next string, err error) {
	time.Sleep(time.Second)
	if err := ctx.Err(); err != nil {
		return nil, "", err
	}
	from, to := s.after(leg.From), len(s.rows)
	if leg.To != nil {
		to = s.after(*leg.To)
	}
	if token != "" {
		from, _ = strconv.Atoi(token)
	}
	if s.some && token == "" && from < to { // an empty page that has a token, as Azure sends them
		return nil, strconv.Itoa(from), nil
	}
	if from+s.size < to {
		to = from + s.size
		next = strconv.Itoa(to)
	}
	for _, k := range s.rows[from:max(from, to)] {
		if accept(k) {
			page = append(page, k)
		}
	}
	return page, next, nil
}

// counted counts requests.
func (s *shelf) counted() Fetch[[]Key] {
	count := make(chan int, 1)
	count <- 0
	return func(ctx context.Context, leg Leg, token string, accept func(Key) bool) ([]Key, string, error) {
		n := <-count
		s.requests = n + 1
		count <- n + 1
		return s.fetch(ctx, leg, token, accept)
	}
}

// world is a way in which tables are filled.
type world struct {
	name string
	key  func(i, n int) Key
	odd  bool
}

func scattered(i int) uint64 {
	return rand.New(rand.NewPCG(uint64(i), 1)).Uint64()
}

var worlds = []world{
	{"padded numbers in 100 partitions", func(i, _ int) Key { return Key{fmt.Sprintf("p%03d", i%100), fmt.Sprintf("%08d", i)} }, false},
	{"one partition of padded numbers", func(i, _ int) Key { return Key{"p", fmt.Sprintf("%06d", i)} }, false},
	{"one partition of numbers with 12 digits", func(i, _ int) Key { return Key{"p", fmt.Sprintf("%012d", i)} }, false},
	{"order numbers", func(i, _ int) Key { return Key{"acme", fmt.Sprintf("O-2024-%06d", i)} }, false},
	{"each row a partition", func(i, _ int) Key { return Key{fmt.Sprintf("customer%07d", i), ""} }, false},
	{"hashes", func(i, _ int) Key { return Key{fmt.Sprintf("%016x", scattered(i)), "r"} }, false},
	{"hashes in one partition", func(i, _ int) Key { return Key{"p", fmt.Sprintf("%016x", scattered(i))} }, false},
	{"unpadded numbers", func(i, _ int) Key { return Key{strconv.Itoa(i), "r"} }, false},
	{"90 % in a partition in the middle", func(i, _ int) Key {
		if i%10 != 0 {
			return Key{"p050", fmt.Sprintf("%08d", i)}
		}
		return Key{fmt.Sprintf("p%03d", i/10%100), fmt.Sprintf("%08d", i)}
	}, false},
	{"90 % in the last partition", func(i, _ int) Key {
		if i%10 != 0 {
			return Key{"p999", fmt.Sprintf("%x", scattered(i))}
		}
		return Key{fmt.Sprintf("p%03d", i/10%1000), fmt.Sprintf("%08d", i)}
	}, false},
	{"90 % in the first partition", func(i, _ int) Key {
		if i%10 != 0 {
			return Key{"a", fmt.Sprintf("%08d", i)}
		}
		return Key{fmt.Sprintf("p%03d", i/10%1000), fmt.Sprintf("%08d", i)}
	}, false},
	{"padded numbers in 40 partitions", func(i, _ int) Key { return Key{fmt.Sprintf("p%03d", i%40), fmt.Sprintf("%08d", i)} }, false},
	{"departments", func(i, _ int) Key {
		return Key{[]string{"Engineering", "Marketing", "Sales", "Works"}[scattered(i)%4], fmt.Sprintf("%06d", i)}
	}, false},
	{"times of one day", func(i, n int) Key {
		return Key{"log", time.Unix(1700000000, 0).Add(time.Duration(i)*86400*time.Second/time.Duration(n)).UTC().Format("2006-01-02T15-04-05") + fmt.Sprint(i%10)}
	}, false},
	{"inverted ticks", func(i, _ int) Key { return Key{"log", fmt.Sprintf("%019d", 2519000000000000000-int64(i)*123456789)} }, false},
	{"quadratic gaps", func(i, _ int) Key { return Key{"p", fmt.Sprintf("%012d", i*i)} }, false},
	{"addresses under a long prefix", func(i, _ int) Key {
		return Key{"https_example.com_a_very_long_prefix_of_all_keys_in_this_table_" + fmt.Sprintf("%x", scattered(i)%65536), strconv.Itoa(i)}
	}, true},
	{"characters of many scripts", func(i, _ int) Key {
		x := scattered(i)
		return Key{string([]rune{rune(0x4e00 + x%5000), rune(0x1f600 + x/5000%50), rune('a' + x/300000%26)}), strconv.Itoa(i % 100)}
	}, true},
}

func (w world) shelf(n, size int) *shelf {
	rows := make([]Key, n)
	for i := range rows {
		rows[i] = w.key(i, n)
	}
	return newShelf(size, rows)
}

// run reads everything, and returns the time that it took as a number of requests.
func (s *shelf) run(t *testing.T, o Options) (chain int) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		scan := New([]Range{{}}, State{}, o, s.counted())
		var all []Key
		for page, err := range scan.Pages(t.Context()) {
			assert.Check(t, err)
			all = append(all, page...)
		}
		chain = int(time.Since(began) / time.Second)
		s.check(t, all, o.Ordered)
		if scan.More() {
			t.Errorf("at the end: %+v", scan.Rest())
		}
	})
	return chain
}

// check: every row came once.
func (s *shelf) check(t *testing.T, all []Key, ordered bool) {
	t.Helper()
	if ordered && !slices.IsSortedFunc(all, compareKeys) {
		t.Errorf("%d rows are not in order", len(all))
	}
	all = slices.Clone(all)
	slices.SortFunc(all, compareKeys)
	if !slices.Equal(all, s.rows) {
		t.Errorf("%d rows, of which %d differ, of %d", len(all), len(slices.Compact(slices.Clone(all))), len(s.rows))
	}
}

// thorough is whether to run all worlds and seeds.
var thorough = os.Getenv("TABLEPATTERNS_THOROUGH") == "1"

var errStruck = errors.New("struck")

// TestChains: eight readers without order need a chain of at most a sixth of one reader's requests for keys of common forms, skewed
// tables included, and of a quarter for others.
func TestChains(t *testing.T) {
	const rows = 100_000
	for i, w := range worlds {
		if !thorough && i%8 != 0 {
			continue
		}
		s := w.shelf(rows, 100)
		one := s.run(t, Options{Readers: 1})
		eight := s.run(t, Options{Readers: 8})
		t.Logf("%-40s %d requests, 1/%.1f", w.name, s.requests, float64(one)/float64(eight))
		least := 6 // of 8
		if w.odd {
			least = 4
		}
		if eight*least > one {
			t.Errorf("%s: the longest chain is %d of %d", w.name, eight, one)
		}
		if s.requests > 3*one/2 {
			t.Errorf("%s: %d requests in place of %d", w.name, s.requests, one)
		}
	}
}

// TestInOrder: in order, the rows of any world come once, with a chain that is never longer than one reader's.
func TestInOrder(t *testing.T) {
	for _, w := range worlds {
		s := w.shelf(20_000, 100)
		if eight := s.run(t, Options{Readers: 8, Ordered: true}); eight > 200 {
			t.Errorf("%s: a chain of %d", w.name, eight)
		}
	}
}

// TestResume: a scan that is cut off anywhere, by an error or by its caller, goes on from its state, and every row comes once.
func TestResume(t *testing.T) {
	seeds := uint64(40)
	if thorough {
		seeds = 1000
	}
	for seed := range seeds {
		dice := rand.New(rand.NewPCG(seed, 5))
		w := worlds[dice.IntN(len(worlds))]
		s := w.shelf(500+dice.IntN(3000), 1+dice.IntN(40))
		s.some = dice.IntN(3) == 0
		o := Options{Readers: 1 + dice.IntN(9), Ordered: dice.IntN(2) == 0, Buffer: dice.IntN(20), Together: dice.IntN(5) == 0}
		initial := []Range{{}}
		if dice.IntN(2) == 0 {
			initial = s.partitions()
		}
		synctest.Test(t, func(t *testing.T) {
			var all []Key
			state := State{}
			for runs := 0; ; runs++ {
				scan := New(initial, state, o, s.faulty(dice.Uint64()))
				if dice.IntN(2) == 0 {
					scan.Work = faultyWork(dice.Uint64())
				}
				cut := dice.IntN(60)
				for page, err := range scan.Pages(t.Context()) {
					if err != nil {
						break
					}
					s.within(t, scan.Yielded(), page)
					all = append(all, page...)
					if cut--; cut == 0 {
						break
					}
				}
				text, err := json.Marshal(scan.Rest())
				state = State{}
				if err = errors.Join(err, json.Unmarshal(text, &state)); err != nil {
					t.Fatal(err)
				}
				if n := len(state.Ranges); n > o.Readers+o.buffer()+2 || o.Ordered && len(initial) == 1 && n > 1 {
					t.Errorf("seed %d: %d ranges in a state of %d readers", seed, n, o.Readers)
				}
				if !scan.More() {
					break
				}
			}
			s.check(t, all, o.Ordered && len(initial) == 1)
		})
		if t.Failed() {
			t.Fatalf("seed %d: %s, %+v", seed, w.name, o)
		}
	}
}

// partitions returns a range for each partition.
func (s *shelf) partitions() (all []Range) {
	for i, k := range s.rows {
		if i == 0 || s.rows[i-1].Partition != k.Partition {
			all = append(all, Partition(k.Partition))
		}
	}
	return all
}

// within: the rows of a page are those of its range.
func (s *shelf) within(t *testing.T, r Range, page []Key) {
	t.Helper()
	from, to := s.after(r.From), len(s.rows)
	if r.To != nil {
		to = s.after(*r.To)
	}
	if !slices.Equal(s.rows[from:max(from, to)], page) {
		t.Errorf("%d rows in the range of a page that has %d", to-from, len(page))
	}
}

// faultyWork fails one time of forty, and takes different times.
func faultyWork(seed uint64) func(context.Context, Range, []Key) error {
	dice := make(chan *rand.Rand, 1)
	dice <- rand.New(rand.NewPCG(seed, 3))
	return func(context.Context, Range, []Key) error {
		d := <-dice
		fails, wait := d.IntN(40) == 0, d.IntN(3000)
		dice <- d
		time.Sleep(time.Duration(wait) * time.Millisecond)
		if fails {
			return errStruck
		}
		return nil
	}
}

// TestUnion: ranges that are added in any order become one where they touch, and the set covers what was added.
func TestUnion(t *testing.T) {
	const n = 30
	dice := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		order := dice.Perm(n)
		var u Union
		for i, at := range order {
			to := &Point{Partition: fmt.Sprintf("p%02d", at+1)}
			if at == n-1 {
				to = nil
			}
			before := len(u)
			with := u.With(Range{Point{Partition: fmt.Sprintf("p%02d", at)}, to})
			if len(u) != before || !with.Valid() {
				t.Fatalf("%+v becomes %+v", u, with)
			}
			u = with
			for k := range n {
				if u.Covers(Point{Partition: fmt.Sprintf("p%02d", k)}) != slices.Contains(order[:i+1], k) {
					t.Fatalf("%+v after %v: partition %d", u, order[:i+1], k)
				}
			}
		}
		if len(u) != 1 || u[0].To != nil || len(u.With(Range{Point{}, &Point{}})) != 1 {
			t.Fatalf("%+v", u)
		}
	}
}

// faulty fails one request of thirty, and waits for different times.
func (s *shelf) faulty(seed uint64) Fetch[[]Key] {
	dice := make(chan *rand.Rand, 1)
	dice <- rand.New(rand.NewPCG(seed, 9))
	return func(ctx context.Context, leg Leg, token string, accept func(Key) bool) ([]Key, string, error) {
		d := <-dice
		fails, wait := d.IntN(30) == 0, d.IntN(1000)
		dice <- d
		time.Sleep(time.Duration(wait) * time.Millisecond)
		if fails {
			return nil, "", errStruck
		}
		return s.fetch(ctx, leg, token, accept)
	}
}

// TestLegs: the filters of a range's legs, one after the other, select the rows of the range.
func TestLegs(t *testing.T) {
	keys := []string{"", "a", "b'", "c", "d"}
	var rows []Key
	var points []Point
	for _, p := range keys {
		for _, r := range keys {
			rows = append(rows, Key{p, r})
			points = append(points, Point{p, r, Before}, Point{p, r, After})
		}
		points = append(points, Point{Partition: p, Side: Behind})
	}
	for _, from := range points {
		for i := -1; i < len(points); i++ {
			r := Range{From: from}
			if i >= 0 {
				if r.To = &points[i]; r.To.Compare(from) <= 0 {
					continue
				}
			}
			var got, want []Key
			for _, k := range rows {
				if !from.covers(k) && (r.To == nil || r.To.covers(k)) {
					want = append(want, k)
				}
			}
			for legs := 0; ; legs++ {
				leg := r.leg()
				filter, err := leg.Filter()
				expr, parsed := odata.Parse(cmp.Or(filter, "true"))
				if err != nil || parsed != nil || legs > 2 || strings.Contains(filter, " or ") {
					t.Fatal(filter, err, parsed, legs)
				}
				for _, k := range rows {
					if odata.Match(expr, func(name string) edm.Value {
						return edm.String(map[string]string{"PartitionKey": k.Partition, "RowKey": k.Row}[name])
					}) {
						got = append(got, k)
					}
				}
				if leg.To == nil || r.ends(*leg.To) {
					break
				}
				r.From = *leg.To
			}
			assert.Slices(assert.Fatal(t), got, want, "%+v to %+v", from, r.To)
		}
	}
}

// TestRuler: the numbers of keys never contradict their order, and a key between two others is found.
func TestRuler(t *testing.T) {
	for _, w := range worlds {
		s := w.shelf(1000, 10)
		var r ruler
		for i := 0; i < len(s.rows); i += 7 {
			r.learn(s.rows[i].Row)
		}
		for i, k := range s.rows[1:] {
			if s.rows[i].Partition != k.Partition {
				continue
			}
			for _, open := range []bool{true, false} {
				scale := r.scaleOf(open, s.rows[i].Row, k.Row)
				if scale.number(s.rows[i].Row).Cmp(scale.number(k.Row)) > 0 {
					t.Fatalf("%s: %q is above %q", w.name, s.rows[i].Row, k.Row)
				}
			}
		}
	}
}

// TestOneError: an error is yielded once, after it nothing, and all readers end.
func TestOneError(t *testing.T) {
	for _, ordered := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			s := worlds[0].shelf(2000, 10)
			failing := func(ctx context.Context, leg Leg, token string, accept func(Key) bool) ([]Key, string, error) {
				if token == "500" {
					return nil, "", errStruck
				}
				return s.fetch(ctx, leg, token, accept)
			}
			scan := New([]Range{{}}, State{}, Options{Readers: 4, Ordered: ordered, Together: true}, failing)
			rows, seen := 0, 0
			for page, err := range scan.Pages(t.Context()) {
				if rows += len(page); err != nil {
					seen++
				}
			}
			if seen != 1 || rows != 500 || !scan.More() {
				t.Errorf("%d errors after %d rows", seen, rows)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			for _, err := range New([]Range{{}}, State{}, Options{Readers: 4}, s.fetch).Pages(ctx) {
				assert.ErrorIs(t, err, context.Canceled)
			}
		})
	}
}
