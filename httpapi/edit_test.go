package httpapi_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/httpapi"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// stock is a row of a service without repository.
type stock struct {
	tables.Meta
	PartitionKey, RowKey string
	Pieces               int
}

// stockRoutes is a handler over the rows of a table: GET of an article with its tag, and POST of a sale, which reads, changes and writes
// the row under the caller's If-Match, and under the row's own ETag.
func stockRoutes(rows *tables.Rows[stock]) http.Handler {
	mux := http.NewServeMux()
	handle := func(pattern string, do func(w http.ResponseWriter, r *http.Request, v *stock) error) {
		mux.Handle(pattern, httpapi.Handler(func(w http.ResponseWriter, r *http.Request) error {
			v, err := rows.Get(r.Context(), tables.Key{Partition: "shop", Row: r.PathValue("article")})
			if err != nil {
				return err
			}
			return do(w, r, v)
		}))
	}
	send := func(w http.ResponseWriter, v *stock) error {
		httpapi.SetETag(w.Header(), v.ETag)
		return reply(w, http.StatusOK, map[string]int{"pieces": v.Pieces})
	}
	handle("GET /stock/{article}", func(w http.ResponseWriter, _ *http.Request, v *stock) error { return send(w, v) })
	handle("POST /stock/{article}/sales", func(w http.ResponseWriter, r *http.Request, v *stock) error {
		condition, err := httpapi.RequireIfMatch(r)
		if err == nil {
			err = condition.Check(v.ETag)
		}
		if err == nil && v.Pieces == 0 {
			err = &tables.Error{Op: "Sell", Kind: tables.ErrInvalid, Err: errors.New("no piece is left")}
		}
		if err != nil {
			return err
		}
		v.Pieces--
		if err := rows.Replace(r.Context(), v); err != nil {
			return err
		}
		return send(w, v)
	})
	return mux
}

// TestReadModifyWrite: sellers of one article who each read, sell under If-Match and begin again after a 412 sell each piece once, and the
// tag of a response is good for the next sale.
func TestReadModifyWrite(t *testing.T) {
	const pieces, sellers = 12, 4
	s := storagetest.Open(t)
	a := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	rows := assert.Must[*tables.Rows[stock]](t)(tables.RowsOf[stock](harness.NewTable(t, a)))
	assert.Check(t, rows.Insert(t.Context(), &stock{PartitionKey: "shop", RowKey: "pen", Pieces: pieces + 2}))
	h := stockRoutes(rows)
	read := func() *httptest.ResponseRecorder { return ask(h, "GET", "/stock/pen", "") }
	sell := func(headers ...string) *httptest.ResponseRecorder {
		return ask(h, "POST", "/stock/pen/sales", "", headers...)
	}

	first := read().Header().Get("ETag")
	second := sell("If-Match", first)
	third := sell("If-Match", `"other", W/`+second.Header().Get("ETag"))
	for want, w := range map[int]*httptest.ResponseRecorder{200: third, 412: sell("If-Match", first), 428: sell(), 404: ask(h, "POST", "/stock/ink/sales", "")} {
		if w.Code != want || want >= 400 && (w.Header().Get("ETag") != "" || w.Header().Get("Cache-Control") != "no-store") {
			t.Errorf("%d %v %s, want %d", w.Code, w.Header(), w.Body, want)
		}
	}
	var all sync.WaitGroup
	sold, refused := make([]int, sellers), make([]int, sellers)
	for i := range sellers {
		all.Go(func() {
			for sold[i] < pieces/sellers && refused[i] < 1000 {
				switch w := sell("If-Match", read().Header().Get("ETag")); w.Code {
				case 200:
					sold[i]++
				case 412:
					refused[i]++
				default:
					t.Errorf("%d %s", w.Code, w.Body)
					return
				}
			}
		})
	}
	all.Wait()
	assert.Equal(t, strings.TrimSpace(read().Body.String()), `{"pieces":0}`, "pieces left; sold %v, refused %v", sold, refused)
	if w := sell("If-Match", read().Header().Get("ETag")); w.Code != 400 {
		t.Errorf("a sale of nothing: %d %s", w.Code, w.Body)
	}
	t.Log(fmt.Sprint("sold ", sold, ", refused and repeated ", refused))
}
