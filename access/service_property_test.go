package access_test

import (
	"errors"
	"testing"

	"pgregory.net/rapid"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTheServiceOpensNoMore: for any span of rows or partitions, the service, by its own inclusive bounds, lets the holder of
// the token read and write nothing outside of the span, and every key within that compoundkey can make.
func TestTheServiceOpensNoMore(t *testing.T) {
	o := newOwner(t, storagetest.Simulator(t, nil))
	text := rapid.Custom(func(t *rapid.T) string {
		return string(rapid.SliceOfN(rapid.SampledFrom([]rune{'a', 'b', '_', '!', ' ', '/', 0x7F, 0xD7FF, 0xE000, 0xFFFC, 0xFFFD, 0xFFFE, 0xFFFF, 0x10000, 0x10FFFF}), 1, 2).Draw(t, "text"))
	})
	in, out := 0, 0
	rapid.Check(t, func(rt *rapid.T) {
		texts := rapid.SliceOfN(text, 3, 3).Draw(rt, "texts")
		from, to := compoundkey.Join("", compoundkey.String(texts[0])), compoundkey.Join("", compoundkey.String(texts[1]))
		var span compoundkey.Span
		switch rapid.IntRange(0, 4).Draw(rt, "kind") {
		case 0:
			span = compoundkey.Range(from, to)
		case 1:
			span = compoundkey.Range(from, "")
		case 2:
			span = compoundkey.Starting("", compoundkey.String(texts[0]))
		case 3:
			span = compoundkey.Prefix(texts[0]).Span
		case 4:
			span = compoundkey.Range("", to)
		}
		byRows := rapid.Bool().Draw(rt, "rows")
		keys, place := access.Partitions(span), func(key string) tables.Key { return at(key, "r") }
		if byRows {
			keys, place = access.Rows("p", span), func(key string) tables.Key { return at("p", key) }
		}
		if keys.Err() != nil {
			if !span.Empty() {
				rt.Fatalf("[%+q, %+q): %v", span.From(), span.To(), keys.Err())
			}
			return
		}
		token := o.sign(access.Grant{Range: keys, Permissions: access.Query | access.Add | access.Update})
		for i := range texts {
			for _, key := range []string{compoundkey.Join("", compoundkey.String(texts[i])), compoundkey.Join("", compoundkey.String(texts[i]), compoundkey.Bool(true)),
				compoundkey.Join("", compoundkey.String(texts[i]+texts[2])), keys.Last().Row, keys.Last().Partition, span.From(), span.To()} {
				if key == "" || key == "p" {
					continue
				}
				status, answer := send(t, o.s, "PUT", addressOf(token, rowAddress(place(key))), "{}")
				if allowed := status < 300; allowed != span.Contains(key) || !allowed && status != 403 {
					rt.Fatalf("[%+q, %+q), key %+q: %d %s", span.From(), span.To(), key, status, answer)
				}
				_, err := openToken(t, o.s, token).Table().Entities().Get(t.Context(), place(key))
				if allowed := !errors.Is(err, access.ErrOutside); allowed != span.Contains(key) {
					rt.Fatalf("[%+q, %+q), key %+q by a client: %v", span.From(), span.To(), key, err)
				}
				if span.Contains(key) {
					in++
				} else {
					out++
				}
			}
		}
	})
	if t.Logf("%d keys within, %d outside", in, out); in < 50 || out < 50 {
		t.Errorf("%d keys within, %d outside", in, out)
	}
}
