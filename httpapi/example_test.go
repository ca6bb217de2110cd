package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/httpapi"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// note is an entity of a tenant.
type note struct {
	tables.Meta
	Tenant string `json:"-"`
	ID     string `json:"id"`
	Text   string `json:"text"`
}

// notes is the handler: GET and POST of /TENANT/notes, GET and PUT of /TENANT/notes/ID. Who may use a tenant is checked before.
type notes struct {
	repo   *patterns.Repository[note]
	tokens *httpapi.PageTokens
}

func (n *notes) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET /{tenant}/notes", httpapi.Handler(n.list))
	mux.Handle("POST /{tenant}/notes", httpapi.Handler(n.post))
	mux.Handle("GET /{tenant}/notes/{id}", httpapi.Handler(n.get))
	mux.Handle("PUT /{tenant}/notes/{id}", httpapi.Handler(n.put))
	return mux
}

// keyOf escapes what comes out of the path.
func keyOf(tenant, id string) tables.Key {
	return tables.Key{Partition: compoundkey.Join("", compoundkey.String(tenant)), Row: compoundkey.Join("", compoundkey.String(id))}
}

func decode(r *http.Request) (*note, error) {
	v := new(note)
	if err := json.NewDecoder(http.MaxBytesReader(nil, r.Body, 1<<16)).Decode(v); err != nil {
		return nil, &tables.Error{Op: "Decode", Kind: tables.ErrInvalid, Err: err} // a body over the limit is *http.MaxBytesError: 413
	}
	v.Tenant = r.PathValue("tenant")
	return v, nil
}

func reply(w http.ResponseWriter, status int, v any) error {
	body, err := json.Marshal(v) // before WriteHeader, so that a failure can still become a problem
	if err != nil {
		return err
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // the caller has gone if this fails
	return nil
}

func (n *notes) get(w http.ResponseWriter, r *http.Request) error {
	v, err := n.repo.Get(r.Context(), keyOf(r.PathValue("tenant"), r.PathValue("id")))
	if err != nil || httpapi.NotModified(w, r, v.ETag) {
		return err
	}
	return reply(w, http.StatusOK, v)
}

func (n *notes) put(w http.ResponseWriter, r *http.Request) error {
	condition, err := httpapi.RequireIfMatch(r)
	if err != nil {
		return err
	}
	sent, err := decode(r)
	if err != nil {
		return err
	}
	v, err := n.repo.Get(r.Context(), keyOf(r.PathValue("tenant"), r.PathValue("id")))
	if err != nil {
		return err
	}
	if err := condition.Check(v.ETag); err != nil {
		return err
	}
	v.Text = sent.Text
	if err := n.repo.Replace(r.Context(), v); err != nil { // under the ETag: another writer that came between is a 412, too
		return err
	}
	httpapi.SetETag(w.Header(), v.ETag)
	return reply(w, http.StatusOK, v)
}

func (n *notes) post(w http.ResponseWriter, r *http.Request) error {
	v, err := decode(r)
	if err != nil {
		return err
	}
	if err := n.repo.Insert(r.Context(), v); err != nil {
		return err
	}
	httpapi.SetETag(w.Header(), v.ETag)
	return reply(w, http.StatusCreated, v)
}

func (n *notes) list(w http.ResponseWriter, r *http.Request) error {
	tenant := r.PathValue("tenant")
	token, err := n.tokens.Open(r.URL.Query().Get("page"), tenant, "list notes")
	if err != nil {
		return err
	}
	page, err := n.repo.Query().Partition(keyOf(tenant, "").Partition).PageSize(2).Page(r.Context(), token)
	if err != nil {
		return err
	}
	next, err := n.tokens.Seal(page.Next, tenant, "list notes")
	if err != nil {
		return err
	}
	return reply(w, http.StatusOK, map[string]any{"notes": page.Items, "next": next})
}

// newNotes opens the handler on a service.
func newNotes(ctx context.Context, account *tables.Account, table string) (*notes, error) {
	t := account.Table(table)
	if err := t.CreateIfMissing(ctx); err != nil {
		return nil, err
	}
	repo, err := patterns.NewRepository(t, patterns.Schema[note]{Key: func(n *note) tables.Key { return keyOf(n.Tenant, n.ID) }})
	if err != nil {
		return nil, err
	}
	// A program reads its keys from a secret store.
	tokens, err := httpapi.NewPageTokens([][]byte{bytes.Repeat([]byte{1}, 32)}, "contoso notes v1", nil)
	return &notes{repo, tokens}, err
}

// ask sends a request to a handler.
func ask(handler http.Handler, method, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, path, strings.NewReader(body))
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	handler.ServeHTTP(w, r)
	return w
}

// A complete handler: conditional reads and writes, a list by page, and errors that tell callers nothing of what is stored.
func Example() {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	n, err := newNotes(context.Background(), account, "Notes")
	if err != nil {
		log.Fatal(err)
	}
	h := n.routes()
	var first string
	for _, id := range []string{"a", "b", "c"} {
		w := ask(h, "POST", "/contoso/notes", `{"id":"`+id+`","text":"buy milk"}`)
		first = cmp.Or(first, w.Header().Get("ETag"))
	}
	fmt.Println("again:", ask(h, "POST", "/contoso/notes", `{"id":"a"}`).Code)
	fmt.Println("unchanged:", ask(h, "GET", "/contoso/notes/a", "", "If-None-Match", first).Code)
	fmt.Println("blind write:", ask(h, "PUT", "/contoso/notes/a", `{"text":"buy tea"}`).Code)
	fmt.Println("write:", ask(h, "PUT", "/contoso/notes/a", `{"text":"buy tea"}`, "If-Match", first).Code)
	late := ask(h, "PUT", "/contoso/notes/a", `{"text":"buy beer"}`, "If-Match", first)
	fmt.Println("late write:", late.Code, late.Body)

	var page struct {
		Notes []note
		Next  string
	}
	if err := json.Unmarshal(ask(h, "GET", "/contoso/notes", "").Body.Bytes(), &page); err != nil {
		log.Fatal(err)
	}
	fmt.Println("first page:", len(page.Notes), page.Next != "")
	fmt.Println("of another tenant:", ask(h, "GET", "/fabrikam/notes?page="+page.Next, "").Code)
	fmt.Print("second page: ", ask(h, "GET", "/contoso/notes?page="+page.Next, "").Body)
	// Output:
	// again: 409
	// unchanged: 304
	// blind write: 428
	// write: 200
	// late write: 412 {"type":"about:blank","title":"Precondition Failed","status":412,"detail":"The resource is not in the version that the request requires. Read it again.","code":"precondition-failed"}
	// first page: 2 true
	// of another tenant: 400
	// second page: {"next":"","notes":[{"id":"c","text":"buy milk"}]}
}
