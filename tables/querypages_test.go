package tables_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// numbered makes rows 0000, 0001, ... of a partition.
func numbered(partition string, n int) []*tables.Entity {
	list := make([]*tables.Entity, n)
	for i := range list {
		list[i] = harness.Bag(partition, fmt.Sprintf("%04d", i), partition)
	}
	return list
}

// TestQueryTop: top and page size over one page and several; the counts of requests are those that are needed.
func TestQueryTop(t *testing.T) {
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	fill(t, table, numbered("p", 1002))
	q := table.Entities().Query().Partition("p")
	for _, tc := range []struct{ top, size, want, requests int }{
		{0, 0, 1002, 2}, {0, 1000, 1002, 2}, {0, 501, 1002, 2}, {1, 0, 1, 1}, {1, 1, 1, 1}, {1, 1000, 1, 1}, {1000, 0, 1000, 1},
		{1001, 0, 1001, 2}, {1002, 0, 1002, 2}, {2000, 0, 1002, 2}, {250, 100, 250, 3}, {200, 100, 200, 2}, {3, 1, 3, 3},
	} {
		requests.Store(0)
		got := rows(t, q.Top(tc.top).PageSize(tc.size))
		if len(got) != tc.want || !slices.IsSorted(got) || len(slices.Compact(got)) != tc.want || int(requests.Load()) != tc.requests {
			t.Errorf("top %d, page size %d: %d rows in %d requests, want %d in %d", tc.top, tc.size, len(got), requests.Load(), tc.want, tc.requests)
		}
	}
}

// TestQueryTokens: a token goes on in another process, with an equal query and no other.
func TestQueryTokens(t *testing.T) {
	ctx := context.Background()
	name := harness.NewTable(t, harness.Account(t)).Name()
	other := harness.NewTable(t, harness.Account(t)).Name()
	fill(t, harness.Account(t).Table(name), numbered("p", 7))
	fill(t, harness.Account(t).Table(name), numbered("q", 3))
	build := func(table string) tables.Query[tables.Entity] {
		return harness.Account(t).Table(table).Entities().Query().Partition("p").Where(tables.Ge("RowKey", "0001")).Top(5).PageSize(2)
	}
	var got []string
	token := ""
	for range 10 {
		page := assert.Must[tables.Page[tables.Entity]](t)(build(name).Page(ctx, token))
		for _, e := range page.Items {
			got = append(got, e.Key.Row)
		}
		if token = page.Next; token == "" {
			break
		}
	}
	assert.Slices(t, got, []string{"0001", "0002", "0003", "0004", "0005"}, "rows of the pages")
	first := assert.Must[tables.Page[tables.Entity]](t)(build(name).Page(ctx, ""))
	if strings.Contains(first.Next, "0001") || strings.ContainsAny(first.Next, "+/=&? ") {
		t.Errorf("token %s is not opaque, or not safe in an address", first.Next)
	}
	if page, err := build(name).PageSize(1).Page(ctx, first.Next); err != nil || len(page.Items) != 1 || page.Items[0].Key.Row != "0003" {
		t.Errorf("another page size: %v", err)
	}
	for what, q := range map[string]tables.Query[tables.Entity]{
		"another partition": build(name).Partition("q"),
		"another filter":    build(name).Filter("Text eq 'p'"),
		"another table":     build(other),
		"another top":       build(name).Top(6),
		"no top":            build(name).Top(0),
		"another selection": build(name).Select("Text"),
		"a point":           build(name).Row("0001"),
	} {
		_, err := q.Page(ctx, first.Next)
		if err == nil {
			t.Errorf("%s takes the token", what)
			continue
		}
		harness.WantKind(t, err, tables.ErrInvalid)
	}
}

// TestQueryTokensForged: what is no token of this version is refused before any request.
func TestQueryTokensForged(t *testing.T) {
	ctx := context.Background()
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	fill(t, table, numbered("p", 5))
	q := table.Entities().Query().Partition("p").Top(4).PageSize(2)
	token := assert.Must[tables.Page[tables.Entity]](t)(q.Page(ctx, "")).Next
	text := string(assert.Must[[]byte](t)(base64.RawURLEncoding.DecodeString(token)))
	forge := func(part, other string) string {
		if !strings.Contains(text, part) {
			t.Fatalf("token %s has no %s", text, part)
		}
		return base64.RawURLEncoding.EncodeToString([]byte(strings.Replace(text, part, other, 1)))
	}
	requests.Store(0)
	for what, forged := range map[string]string{
		"garbage":           "garbage!",
		"base64 of garbage": base64.RawURLEncoding.EncodeToString([]byte("garbage")),
		"null":              base64.RawURLEncoding.EncodeToString([]byte("null")),
		"empty object":      base64.RawURLEncoding.EncodeToString([]byte("{}")),
		"cut":               token[:len(token)/2],
		"cut by one":        token[:len(token)-1],
		"cut by four":       token[:len(token)-4],
		"doubled":           token + token,
		"another version":   forge(`"v":1`, `"v":2`),
		"no version":        forge(`"v":1`, `"v":0`),
		"nothing left":      forge(`"n":2`, `"n":0`),
		"less than nothing": forge(`"n":2`, `"n":-1`),
		"more than asked":   forge(`"n":2`, `"n":5`),
		"no place":          forge(`"p":`, `"x":`),
	} {
		_, err := q.Page(ctx, forged)
		if err == nil {
			t.Errorf("%s is taken", what)
			continue
		}
		if e := harness.WantKind(t, err, tables.ErrInvalid); e.Table != table.Name() || strings.Contains(strings.ReplaceAll(e.Error(), e.Table, ""), forged) {
			t.Errorf("%s: %v", what, e)
		}
	}
	assert.Equal(t, requests.Load(), 0, "requests")
}

// service answers queries as Azure does where the emulator does not: a page may be empty and go on, and the place to go
// on may be a partition without a row.
func service(t *testing.T, pages ...[]string) (*tables.Account, *[]string) {
	var asked []string
	n := 0
	return harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		query := req.URL.Query()
		asked = append(asked, query.Get("NextPartitionKey")+"|"+query.Get("NextRowKey")+"|"+query.Get("$top"))
		if n >= len(pages) {
			return harness.Reply(req, 500, ""), nil
		}
		rows := make([]string, len(pages[n]))
		for i, row := range pages[n] {
			rows[i] = `{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"` + row + `","Timestamp":"2014-08-22T00:50:32Z","Text":null}`
		}
		n++
		headers := []string{"Content-Type", "application/json"}
		if n < len(pages) {
			headers = append(headers, "x-ms-continuation-NextPartitionKey", "1!4!"+strconv.Itoa(n)+"-")
			if n%2 == 0 {
				headers = append(headers, "x-ms-continuation-NextRowKey", "1!8!"+strconv.Itoa(n)+"+/=")
			}
		}
		return harness.Reply(req, 200, `{"odata.metadata":"x","value":[`+strings.Join(rows, ",")+`]}`, headers...), nil
	}), &asked
}

func TestQueryEmptyPages(t *testing.T) {
	a, asked := service(t, nil, []string{"a"}, nil, nil, []string{"b", "c"}, nil)
	q := a.Table("Contoso").Entities().Query().Partition("p")
	assert.Slices(t, rows(t, q.Top(10)), []string{"a", "b", "c"}, "rows")
	want := []string{"||10", "1!4!1-||10", "1!4!2-|1!8!2+/=|9", "1!4!3-||9", "1!4!4-|1!8!4+/=|9", "1!4!5-||7"}
	assert.Slices(t, *asked, want, "asked")
	a, _ = service(t, nil, nil, []string{"a"})
	page := assert.Must[tables.Page[tables.Entity]](t)(a.Table("Contoso").Entities().Query().Partition("p").Page(context.Background(), ""))
	if len(page.Items) != 0 || page.Next == "" {
		t.Errorf("an empty page with a token becomes %+v", page)
	}
	if e := assert.Must[*tables.Entity](t)(a.Table("Contoso").Entities().Query().Partition("p").First(context.Background())); e.Key.Row != "a" || e.Properties.Has("Text") {
		t.Errorf("first is %+v", e)
	}
}

// TestQueryErrorComesLast: what was read before an error is given, then the error, once.
func TestQueryErrorComesLast(t *testing.T) {
	pages := 0
	a := harness.InProcess(t, func(req *http.Request) (*http.Response, error) {
		if pages++; pages == 2 {
			return harness.Reply(req, 503, ""), nil
		}
		return harness.Reply(req, 200, `{"value":[{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"a"}]}`, "x-ms-continuation-NextPartitionKey", "x"), nil
	})
	var got []string
	var errs []error
	for e, err := range a.Table("Contoso").Entities().Query().Partition("p").All(context.Background()) {
		if err != nil {
			errs = append(errs, err)
			if e != nil {
				t.Error("an entity comes with the error")
			}
			continue
		}
		got = append(got, e.Key.Row)
	}
	if len(got) != 1 || len(errs) != 1 || pages != 2 {
		t.Fatalf("%q, %v in %d requests", got, errs, pages)
	}
	harness.WantKind(t, errs[0], tables.ErrUnavailable)
}

// noLeaks fails the test if it leaves goroutines behind; connections that are kept for reuse are closed first.
func noLeaks(t *testing.T) {
	t.Helper()
	through := harness.ClientOptions(t, nil).Transport
	before := goleak.IgnoreCurrent()
	t.Cleanup(func() {
		if network, ok := through.(interface{ CloseIdleConnections() }); ok {
			network.CloseIdleConnections()
		}
		goleak.VerifyNone(t, before)
	})
}

func TestQueryStopsEarly(t *testing.T) {
	noLeaks(t)
	a, f := faultyAccount(t, -1)
	table := harness.NewTable(t, a)
	fill(t, table, numbered("p", 6))
	f.arm(nil)
	n := 0
	for _, err := range table.Entities().Query().Partition("p").PageSize(2).All(context.Background()) {
		assert.Check(t, err)
		if n++; n == 3 {
			break
		}
	}
	if n != 3 || f.reads != 2 {
		t.Errorf("%d rows in %d requests", n, f.reads)
	}
}

func TestQueryCancelled(t *testing.T) {
	noLeaks(t)
	a, f := faultyAccount(t, 3)
	table := harness.NewTable(t, a)
	fill(t, table, numbered("p", 6))
	f.arm(nil)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	n := 0
	var errs []error
	for _, err := range table.Entities().Query().Partition("p").PageSize(2).All(ctx) {
		if err != nil {
			errs = append(errs, err)
			continue
		}
		if n++; n == 2 {
			cancel()
		}
	}
	if n != 2 || len(errs) != 1 || !errors.Is(errs[0], context.Canceled) || f.reads != 1 {
		t.Errorf("%d rows, errors %v, %d requests", n, errs, f.reads)
	}
	for _, q := range []tables.Query[tables.Entity]{table.Entities().Query().Partition("p"), table.Entities().Query().Partition("p").Row("0001")} {
		assert.ErrorIs(t, assert.Err(q.First(ctx)), context.Canceled, "cancelled before")
	}
}

// TestQuerySpans: half-open, and in the service's order.
func TestQuerySpans(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	fill(t, table, []*tables.Entity{harness.Bag("p", "", ""), harness.Bag("p", "a", ""), harness.Bag("p", "a0", ""), harness.Bag("p", "b", ""), harness.Bag("p", "b0", ""), harness.Bag("p", "\U0001F600", ""), harness.Bag("p", "\uFF21", "")})
	q := table.Entities().Query().Partition("p")
	for want, span := range map[string]compoundkey.Span{
		" a a0 b b0 \U0001F600 \uFF21": compoundkey.All(),
		"a a0":                         compoundkey.Range("a", "b"),
		"b b0 \U0001F600 \uFF21":       compoundkey.Range("b", ""),
		"b b0":                         compoundkey.Prefix("b").Span,
	} {
		assert.Equal(t, strings.Join(rows(t, q.Rows(span)), " "), want, span)
	}
}
