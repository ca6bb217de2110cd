package tables_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// keyUses are all the ways in which a caller's key reaches the service.
func keyUses(table *tables.Table, key tables.Key) map[string]func() error {
	ctx := context.Background()
	bags := table.Entities()
	e := func() *tables.Entity { return &tables.Entity{Key: key, ETag: `W/"x"`} }
	commit := func(add func(*tables.Transaction)) func() error {
		return func() error {
			x := table.NewTransaction()
			x.Upsert(harness.Row(key.Partition, "beside"))
			add(x)
			_, err := x.Commit(ctx)
			return err
		}
	}
	return map[string]func() error{
		"Get":                 func() error { _, err := bags.Get(ctx, key); return err },
		"Insert":              func() error { return bags.Insert(ctx, e()) },
		"Replace":             func() error { return bags.Replace(ctx, e()) },
		"Merge":               func() error { return bags.Merge(ctx, e()) },
		"Upsert":              func() error { return bags.Upsert(ctx, e()) },
		"Delete":              func() error { return bags.Delete(ctx, e()) },
		"DeleteUnconditional": func() error { return bags.DeleteUnconditional(ctx, key) },
		"Query":               func() error { _, err := bags.Query().Partition(key.Partition).Row(key.Row).Page(ctx, ""); return err },
		"GetMany": func() error {
			for _, err := range bags.GetMany(ctx, []tables.Key{key}, nil) {
				return err
			}
			return nil
		},
		"Transaction.Insert": commit(func(x *tables.Transaction) { x.Insert(e()) }),
		"Transaction.Delete": commit(func(x *tables.Transaction) { x.DeleteUnconditional(key) }),
	}
}

func TestHostileKeysAreRefused(t *testing.T) {
	a, requests := harness.Counted(t)
	table := harness.NewTable(t, a)
	illegal := []string{"/", `\`, "#", "?", "\xff", "\xc3", "\xed\xa0\x80", "\xed\xb0\x80"}
	for c := rune(0); c <= 0x9F; c++ {
		if c < 0x20 || c >= 0x7F {
			illegal = append(illegal, string(c))
		}
	}
	for _, c := range illegal {
		for _, text := range []string{c, "a" + c, c + "b", "é" + c + "😀"} {
			for _, key := range []tables.Key{{Partition: text, Row: "r"}, {Partition: "p", Row: text}} {
				for use, f := range keyUses(table, key) {
					harness.RefusedUnsent(t, requests, tables.ErrInvalid, fmt.Sprintf("%s of %q", use, key), f)
				}
			}
		}
	}
	for _, long := range []string{strings.Repeat("a", 513), strings.Repeat("é", 513), strings.Repeat("😀", 256) + "a", strings.Repeat("x", 1<<20)} {
		for _, key := range []tables.Key{{Partition: long, Row: "r"}, {Partition: "p", Row: long}} {
			for use, f := range keyUses(table, key) {
				harness.RefusedUnsent(t, requests, tables.ErrTooLarge, fmt.Sprintf("%s of a key of %d bytes", use, len(long)), f)
				if text := f().Error(); len(text) > 500 {
					t.Errorf("%s: the error has %d bytes", use, len(text))
				}
			}
		}
	}
}

// hostileKeys are legal, every one.
var hostileKeys = []string{
	"", ".", "..", "...", " ", "  lead", "trail  ", "a b", "'", "''", "'''", "O'Brien", `"`, "%", "%%", "%2F", "%27", "%00", "100%", "+", "a+b c",
	"%2B", "&", "a&b=c", "=", "$", "$batch", "$filter", "@", ":", ";", ",", "!", "*", "()", ")", "',RowKey='x", "[]{}", "|", "^", "~", "`", "<>", "a;b",
	"ü", "é", "e\u0301", "日本語", "😀", "👩‍👩‍👧", "\u00A0", "\u2028", "\uFEFF", "\uFFFD", "\uFFFF", "\uE000", "\U0010FFFF", "İ", "ß", "null", "undefined", "__proto__", "constructor",
	strings.Repeat("a", 512), strings.Repeat("'", 512), strings.Repeat("é", 512), strings.Repeat("日", 512), strings.Repeat("😀", 256),
}

func TestHostileKeysRoundTrip(t *testing.T) {
	table := harness.NewTable(t, harness.Account(t))
	for i, key := range hostileKeys {
		mirror := hostileKeys[len(hostileKeys)-1-i]
		for _, k := range []tables.Key{{Partition: key, Row: mirror}, {Partition: "p", Row: key}} {
			t.Run(fmt.Sprintf("%.20q", k.Partition+"|"+k.Row), func(t *testing.T) { keyRoundTrip(t, table, k) })
		}
	}
}

// keyRoundTrip takes one key through every verb.
func keyRoundTrip(t *testing.T, table *tables.Table, key tables.Key) {
	ctx := context.Background()
	bags := table.Entities()
	e := &tables.Entity{Key: key, Properties: tables.Properties{{Name: "N", Value: tables.Int32(1)}}}
	got := roundTrip(t, table, e)
	harness.WantKind(t, bags.Insert(ctx, e), tables.ErrExists)
	// A selection keeps the query from being answered by a point read.
	page := assert.Must[tables.Page[tables.Entity]](t)(bags.Query().Partition(key.Partition).Row(key.Row).Select("N").Page(ctx, ""))
	if len(page.Items) != 1 || page.Items[0].Key != key {
		t.Fatalf("the query found %d rows", len(page.Items))
	}
	got.Set("N", tables.Int32(2))
	assert.Check(t, bags.Replace(ctx, got))
	assert.Check(t, bags.Merge(ctx, got))
	if harness.OnAzurite(t) && azuriteMisreads(key) {
		assert.Check(t, bags.Delete(ctx, got))
	} else {
		transactionRoundTrip(t, table, got)
	}
	harness.WantKind(t, assert.Err(bags.Get(ctx, key)), tables.ErrNotFound)
}

// azuriteMisreads reports whether Azurite takes the wrong keys out of an address in a transaction: it looks for the
// last "'," in it, which can be in the row key, and not beyond a line. TestTransactionAddresses shows that what we send
// is right.
func azuriteMisreads(key tables.Key) bool {
	return strings.Contains("'"+strings.ReplaceAll(key.Row, "'", "''"), "',") || strings.Contains(key.Partition+key.Row, "\u2028")
}

func transactionRoundTrip(t *testing.T, table *tables.Table, e *tables.Entity) {
	ctx := context.Background()
	stale := e.Clone()
	beside := tables.Key{Partition: e.Key.Partition, Row: "beside (another row)"}
	x := table.NewTransaction()
	x.Merge(e)
	x.Upsert(&tables.Entity{Key: beside})
	etags := assert.Must[[]azcore.ETag](t)(x.Commit(ctx))
	harness.WantKind(t, table.Entities().Delete(ctx, stale), tables.ErrConflict)
	x = table.NewTransaction()
	x.Delete(&tables.Entity{Key: e.Key, ETag: etags[0]})
	x.DeleteUnconditional(beside)
	assert.Must[[]azcore.ETag](t)(x.Commit(ctx))
}

// TestTransactionAddresses reads the addresses of a transaction back as the service does: percent-decoded, then the
// doubled quotes made one.
func TestTransactionAddresses(t *testing.T) {
	var sent string
	service := func(req *http.Request) (*http.Response, error) {
		body, err := io.ReadAll(req.Body)
		sent = string(body)
		return harness.Reply(req, http.StatusAccepted, batchAnswer(batchOK, batchOK), "Content-Type", batchContent), err
	}
	table := harness.InProcess(t, service).Table("Employees")
	for _, row := range hostileKeys {
		for _, partition := range []string{"p", "',RowKey='x", row} {
			x := table.NewTransaction()
			x.DeleteUnconditional(tables.Key{Partition: partition, Row: row})
			x.DeleteUnconditional(tables.Key{Partition: partition, Row: "beside"})
			assert.Must[[]azcore.ETag](t)(x.Commit(context.Background()))
			_, rest, _ := strings.Cut(sent, "DELETE http://table.test/contoso/")
			address, _, _ := strings.Cut(rest, " HTTP/1.1\r\n")
			decoded := assert.Must[string](t)(url.PathUnescape(address))
			quote := func(key string) string { return "'" + strings.ReplaceAll(key, "'", "''") + "'" }
			if want := "Employees(PartitionKey=" + quote(partition) + ",RowKey=" + quote(row) + ")"; decoded != want {
				t.Errorf("address %q says %q, want %q", address, decoded, want)
			}
			if strings.ContainsAny(address, "?#\\ \"<>") {
				t.Errorf("address %q is not escaped", address)
			}
		}
	}
}

// TestKeysThatLookAlike: keys are compared unit by unit, and nothing folds or normalizes them.
func TestKeysThatLookAlike(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	alike := []string{"key", "Key", "KEY", "key ", " key", "k%65y", "é", "e\u0301", "É", "ss", "ß", "ſs", "K", "\u212A", "", "'", "''"}
	for i, row := range alike {
		if err := table.Entities().Insert(ctx, harness.Row("p", row, tables.Property{Name: "N", Value: tables.Int32(int32(i))})); err != nil {
			t.Fatalf("%q: %v", row, err)
		}
	}
	for i, row := range alike {
		got := assert.Must[*tables.Entity](t)(table.Entities().Get(ctx, tables.Key{Partition: "p", Row: row}))
		assert.Equal(t, got.Get("N"), tables.Int32(int32(i)), "%q is another row", row)
		page := assert.Must[tables.Page[tables.Entity]](t)(table.Entities().Query().Partition("p").Row(row).Select("N").Page(ctx, ""))
		if len(page.Items) != 1 || page.Items[0].Get("N") != tables.Int32(int32(i)) {
			t.Errorf("a query for %q finds %d rows", row, len(page.Items))
		}
	}
}
