package widentities_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

// TestSizes stores entities of all sizes, reads them back by key and by index, and counts the requests.
func TestSizes(t *testing.T) {
	noise := rand.NewChaCha8([32]byte{7})
	bytes := make([]byte, 1<<20)
	_, _ = noise.Read(bytes)
	binary := withText(12, 0)
	binary.More["Photo"] = tables.Binary(bytes)
	mixed := withNumbers(13, 300)
	mixed.More["Essay"] = tables.String(strings.Repeat("é🙂", 50_000))
	for _, c := range []struct {
		profile     *profile
		rows, reads int
	}{
		{withNumbers(1, 244), 1, 1},
		{withNumbers(2, 245), 2, 2},
		{withNumbers(3, 252), 2, 2},
		{withNumbers(4, 253), 2, 2},
		{withNumbers(5, 5_000), 8, 2},
		{withNumbers(6, 25_000), 9, 2},
		{withText(7, 32*1024), 1, 1},
		{withText(8, 32*1024+1), 2, 2},
		{withText(9, 64*1024), 2, 2},
		{withText(10, 64*1024+1), 2, 2},
		{binary, 5, 2},
		{mixed, 2, 2},
	} {
		t.Run(fmt.Sprintf("%d", c.profile.ID), func(t *testing.T) {
			s, requests := harness.CountedService(storagetest.Open(t))
			p, _ := open(t, s)
			requests.Reset()
			assert.Check(t, p.profiles.Insert(t.Context(), c.profile))
			assert.Equal(t, requests.Reset(), 1, "the insert: requests")
			got := assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(c.profile.ID)))
			assert.Equal(t, requests.Reset(), c.reads, "the read: requests")
			same(t, got, c.profile)
			got = assert.Must[*profile](t)(p.byEmail.In("red").Get(t.Context(), c.profile.Email))
			same(t, got, c.profile)
			keys := assert.Must[[]string](t)(rowKeys(t.Context(), p))
			if len(keys) != 2*c.rows { // each with its copy
				t.Errorf("%d rows, want 2 of %d: %q", len(keys), c.rows, keys)
			}
		})
	}
}

// TestLargest looks for the first size that is refused, without and with a copy, and that nothing was sent.
func TestLargest(t *testing.T) {
	s, requests := harness.CountedService(storagetest.Open(t))
	p, table := open(t, s)
	assert.Check(t, p.profiles.Insert(t.Context(), withText(1, 1_900_000)))
	requests.Reset()
	err := p.profiles.Insert(t.Context(), withText(2, 2_100_000))
	if !errors.Is(err, tables.ErrTooLarge) || requests.Count() != 0 {
		t.Fatalf("%v after %d requests", err, requests.Count())
	}
	assert.Contains(t, err.Error(), "4194304", "the limit is not named")
	bare := bareProfiles(t, s, table)
	assert.Check(t, bare.Insert(t.Context(), withText(3, 3<<20))) // 3 MiB
	least, most := 3<<20, 4<<20
	for most-least > 1 {
		requests.Reset()
		middle := (least + most) / 2
		switch _, err := bare.Explain(t.Context(), driver.ChangeInsert, withText(4, middle)); {
		case err == nil:
			least = middle
		case errors.Is(err, tables.ErrTooLarge) && requests.Count() == 0:
			most = middle
		default:
			t.Fatal(err)
		}
	}
	assert.Check(t, bare.Insert(t.Context(), withText(4, least)))
	requests.Reset()
	if err := bare.Insert(t.Context(), withText(5, most)); !errors.Is(err, tables.ErrTooLarge) || requests.Count() != 0 {
		t.Fatalf("%v after %d requests", err, requests.Count())
	}
	t.Logf("the largest text is of %d characters", least)
}

// TestFirstRow holds what conditions and projections may use, and what they cost.
func TestFirstRow(t *testing.T) {
	s, requests := harness.CountedService(storagetest.Open(t))
	p, _ := open(t, s)
	assert.Check(t, p.profiles.Insert(t.Context(), withNumbers(1, 5_000)), p.profiles.Insert(t.Context(), withNumbers(2, 20)))
	query := p.profiles.Query().Partition("red")
	_, err := query.Where(tables.Eq("Answer00007", 7)).Page(t.Context(), "")
	assert.ErrorIs(t, err, tables.ErrInvalid, "a condition on a property that may be in a further row")
	for _, c := range []struct {
		selected  []string
		condition tables.Condition
		requests  int
	}{
		{[]string{"Email"}, tables.Eq("Email", "p1@contoso.com"), 1},
		{[]string{"Email", "Answer00003"}, tables.Eq("Email", "p1@contoso.com"), 2},
		{[]string{"Answer00003", "Answer04900"}, tables.Eq("Email", "p1@contoso.com"), 3},
		{nil, tables.Eq("Email", "p1@contoso.com"), 2},
		{nil, tables.Eq("Email", "p2@contoso.com"), 1},
	} {
		requests.Reset()
		got := assert.Must[*profile](t)(query.Select(c.selected...).Where(c.condition).First(t.Context()))
		assert.Equal(t, requests.Reset(), c.requests, "%q: requests", c.selected)
		if c.selected == nil {
			same(t, got, withNumbers(got.ID, map[int]int{1: 5_000, 2: 20}[got.ID]))
			continue
		}
		for _, name := range []string{"Answer00003", "Answer04900"} {
			v, is := got.More[name]
			if slices.Contains(c.selected, name) != is || is && v != withNumbers(1, 5_000).More[name] {
				t.Errorf("%s of %q is %v, %v", name, c.selected, v, is)
			}
		}
	}
}

// TestMergeTouchesFewRows counts what a merge of one property writes.
func TestMergeTouchesFewRows(t *testing.T) {
	s, requests := harness.CountedService(storagetest.Open(t))
	p, _ := open(t, s)
	assert.Check(t, p.profiles.Insert(t.Context(), withNumbers(1, 25_000)))
	before := assert.Must[map[string]string](t)(versions(t.Context(), p))
	v := assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(1)))
	v.More["Answer12345"] = tables.Int32(-1)
	requests.Reset()
	assert.Check(t, p.profiles.Merge(t.Context(), v, "Answer12345"))
	assert.Equal(t, requests.Reset(), 3, "the merge: requests")
	after := assert.Must[map[string]string](t)(versions(t.Context(), p))
	changed := 0
	for key, etag := range after {
		if before[key] != etag {
			changed++
		}
	}
	if changed != 4 { // first row and one further, each with its copy
		t.Errorf("%d of %d rows were written", changed, len(after))
	}
	got := assert.Must[*profile](t)(p.profiles.Get(t.Context(), at(1)))
	same(t, got, v)
	assert.Check(t, p.profiles.Replace(t.Context(), v))
}

// TestLimitsOfThePage holds the largest values that fit and the first that do not, and requires that the page states exactly them. A
// transaction names the address of each row, so the numbers are those of the table that the page names; nothing is sent.
func TestLimitsOfThePage(t *testing.T) {
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(
		"DefaultEndpointsProtocol=https;AccountName=contoso;AccountKey=a2V5;EndpointSuffix=core.windows.net", nil))
	byEmail := intrapartition.NewUnique("email", func(p *profile) string { return p.Email }, nil)
	repository := func(attached ...patterns.Pattern[profile]) *patterns.Repository[profile] {
		return assert.Must[*patterns.Repository[profile]](t)(patterns.NewRepository(account.Table("Profiles"), schema, attached...))
	}
	wide := &widentities.Options{FirstRow: []string{"Team", "ID", "Email"}}
	bare, indexed := repository(widentities.New[profile](wide)), repository(widentities.New[profile](wide), byEmail)
	explain := func(repo *patterns.Repository[profile], p *profile) *patterns.Explanation {
		x, err := repo.Explain(t.Context(), driver.ChangeInsert, p)
		if err != nil && !errors.Is(err, tables.ErrTooLarge) {
			t.Fatal(err)
		}
		return x
	}
	withBinary := func(size int) *profile {
		p := withText(1, 0)
		p.More["Text"] = tables.Binary(make([]byte, size))
		return p
	}
	inOneRow := func(size int) *profile { // of so many bytes by the service's formula, without the key
		p := withText(1, 0)
		size -= edm.PropertySize("Text", edm.String("")) + edm.PropertySize("Team", edm.String(p.Team)) + edm.PropertySize("ID", edm.Int64(1)) + edm.PropertySize("Email", edm.String(p.Email))
		for i := 0; size > 0; i++ {
			name := fmt.Sprintf("B%02d", i)
			n := min(60_000, size-edm.PropertySize(name, edm.Binary(nil)))
			p.More[name] = tables.Binary(make([]byte, n))
			size -= edm.PropertySize(name, edm.Binary(make([]byte, n)))
		}
		return p
	}
	page := string(assert.Must[[]byte](t)(os.ReadFile("../docs/reference/widentities.md")))
	for _, c := range []struct {
		largest int
		stated  string
		fits    func(n int) bool
	}{
		{4_186_623, "a text of %s ASCII characters", func(n int) bool { return explain(bare, withText(1, n)) != nil }},
		{3_139_965, "a binary value of %s bytes", func(n int) bool { return explain(bare, withBinary(n)) != nil }},
		{2_092_643, "a text of %s with an index in the partition", func(n int) bool { return explain(indexed, withText(1, n)) != nil }},
		{widentities.MaxNarrowProperties, "at most %s properties", func(n int) bool { return len(explain(bare, withNumbers(1, n)).Rows) == 1 }},
		{widentities.MaxNarrowSize, "%s bytes of properties", func(n int) bool { return len(explain(bare, inOneRow(n)).Rows) == 1 }},
		{tables.MaxStringUnits, "texts of %s UTF-16 units", func(n int) bool { return len(explain(bare, withText(1, n)).Rows) == 1 }},
		{tables.MaxBinarySize, "binary values of %s bytes", func(n int) bool { return len(explain(bare, withBinary(n)).Rows) == 1 }},
	} {
		want := fmt.Sprintf(c.stated, grouped(c.largest))
		if !c.fits(c.largest) || c.fits(c.largest+1) {
			t.Errorf("%q is not the limit: find it with Explain, and state it on the page", want)
		}
		assert.Contains(t, page, want, "the page")
	}
}

// grouped writes a number with commas between groups of three digits.
func grouped(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", grouped(n/1000), n%1000)
}
