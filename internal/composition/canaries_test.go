package composition

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"os"
	"path"
	"reflect"
	"slices"
	"strings"
	"testing"

	azlog "github.com/Azure/azure-sdk-for-go/sdk/azcore/log"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/testrun"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Secrets that stand in for those of a program. Whatever shows half of one is found.
const (
	canarySignature = "Y2FuYXJ5c2lnbmF0dXJlb2Zhc2FzMDEyMzQ1Njc4OTA="
	canaryPlaintext = "canary-078-05-1120-plaintext"
	canaryWrapping  = "canarywrappingkey0123456789abcde"
	canarySigning   = "canarysigningkeyABCDEFGHIJKLMNOP"
)

// birds look for secrets in everything that a program could print, log or export.
type birds struct {
	harness.SecretSearch
	keys    []string        // of any kind
	plain   []string        // values of encrypted properties
	watched map[string]bool // exported types of which a value was formatted
}

func (b *birds) search(where, text string, secrets ...[]string) {
	b.Search(where[:min(len(where), 5)], where, text, slices.Concat(secrets...)...)
}

// formsOf is how a secret can look: its halves, as text and bytes, in hexadecimal, base64, decimal and escaped.
func formsOf(secrets ...string) (forms []string) {
	for _, secret := range secrets {
		for _, half := range []string{secret[:len(secret)/2], secret[len(secret)/2:]} {
			hexadecimal, digits := hex.EncodeToString([]byte(half)), strings.Trim(fmt.Sprint([]byte(half)), "[]")
			forms = append(forms, half, url.QueryEscape(half), hexadecimal, strings.ToUpper(hexadecimal), fmt.Sprintf("% x", half), digits, strings.ReplaceAll(digits, " ", ","))
		}
		forms = append(forms, base64.StdEncoding.EncodeToString([]byte(secret))[:len(secret)/2])
	}
	return forms
}

// textsOf is all that can be made of a value without knowing it.
func textsOf(v any) []string {
	var texts []string
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x", "%X", "%d"} {
		texts = append(texts, fmt.Sprintf(verb, v))
	}
	encoded, err := json.Marshal(v)
	var b bytes.Buffer
	for _, h := range []slog.Handler{slog.NewTextHandler(&b, nil), slog.NewJSONHandler(&b, nil)} {
		slog.New(h).Info("m", "v", v, slog.Group("g", "v", v))
	}
	return append(texts, string(encoded), fmt.Sprint(err), b.String())
}

// value looks at a value, at what a pointer points to, at both within another value and behind an unexported field.
func (b *birds) value(v any, secrets ...[]string) {
	type hidden struct{ inner any }
	at := reflect.TypeOf(v)
	forms := []any{v, []any{v}, hidden{v}, struct{ Shown any }{v}}
	if at.Kind() == reflect.Pointer && !reflect.ValueOf(v).IsNil() {
		at = at.Elem()
		forms = append(forms, reflect.ValueOf(v).Elem().Interface(), hidden{reflect.ValueOf(v).Elem().Interface()})
	}
	name, _, _ := strings.Cut(at.Name(), "[")
	b.watched[path.Base(at.PkgPath())+"."+name] = true
	for _, form := range forms {
		for _, text := range textsOf(form) {
			b.search("value of "+at.String(), text, secrets...)
		}
	}
}

// error looks at an error and all that it wraps.
func (b *birds) error(where string, err error) {
	testrun.EachCause(err, func(err error) {
		for _, text := range textsOf(err) {
			b.search("error of "+where, text, b.keys, b.plain)
		}
	})
}

// provider looks at spans.
func (b *birds) provider() tracing.Provider {
	return harness.Spans(func(text string) { b.search("span", text, b.keys, b.plain) })
}

// Write is for the logs of the library.
func (b *birds) Write(line []byte) (int, error) {
	b.search("log", string(line), b.keys, b.plain)
	return len(line), nil
}

// listen looks at the SDK's log and the standard logger until the test ends.
func (b *birds) listen(t *testing.T) {
	azlog.SetListener(func(_ azlog.Event, text string) { b.search("log", text, b.keys, b.plain) })
	standard := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(b, nil)))
	t.Cleanup(func() { azlog.SetListener(nil); slog.SetDefault(standard) })
}

// gossip is a proxy that quotes what it was sent: as a transport error, or as an answer of a status.
type gossip int

func (g gossip) String() string { return fmt.Sprintf("gossip%d", int(g)) }

func (g gossip) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (*http.Response, error) {
	if g == 0 {
		return nil, fmt.Errorf("proxy of %s: %w", req.URL, errors.Join(io.ErrUnexpectedEOF, fmt.Errorf("asked for %q with %q", req.URL, req.Header.Get("Authorization"))))
	}
	body := fmt.Sprintf(`{"odata.error":{"code":"Odd","message":{"lang":"en-US","value":"no access: %s"}}}`, req.URL)
	return &http.Response{StatusCode: int(g), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: req, Header: http.Header{"Content-Type": {"application/json"}, "X-Ms-Error-Code": {"Odd"}},
		Body: io.NopCloser(strings.NewReader(body))}, nil
}

// sensitive is where canaries are: a desk of all patterns, whose items have canaries in them, on a service of its own.
type sensitive struct {
	*birds
	s       *storagetest.Service
	office  *office
	desk    *desk
	wrapper encryption.LocalKey
	keys    *tables.Table
}

func newSensitive(t *testing.T) *sensitive {
	t.Helper()
	x := &sensitive{s: storagetest.Simulator(t, nil), birds: &birds{watched: map[string]bool{}}}
	x.listen(t)
	x.wrapper = assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey("local", []byte(canaryWrapping)))
	x.keys = assert.Must[*tables.Account](t)(open(storagetest.Simulator(t, nil))).Table("DataKeys")
	assert.Check(t, x.keys.Create(t.Context()))
	registry := assert.Must[*encryption.Registry](t)(encryption.NewRegistry(x.keys, x.wrapper, nil))
	id := assert.Must[encryption.DataKeyID](t)(registry.CreateDataKey(t.Context()))
	row := assert.Must[*tables.Entity](t)(x.keys.Entities().Get(t.Context(), tables.Key{Partition: "datakeys", Row: "key_" + id.String()}))
	wrapped, _ := row.Get("Wrapped").Bytes()
	dataKey := assert.Must[[]byte](t)(x.wrapper.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "local", Algorithm: "A256KW", Bytes: wrapped}))
	decoded := assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(x.s.AccountKey))
	x.birds.keys = formsOf(x.s.AccountKey, string(decoded), canarySignature, canaryWrapping, canarySigning, string(dataKey))
	x.plain = formsOf(canaryPlaintext)
	x.office = newOfficeOf(t, x.s, registry)
	x.desk = assert.Must[*desk](t)(x.office.open(x.s))
	assert.Check(t, x.desk.items.Insert(t.Context(), x.item(1)), x.desk.items.Insert(t.Context(), x.item(2)))
	return x
}

// item has the canary in each encrypted property, and in the photo, which is sealed.
func (x *sensitive) item(id int) *item {
	v := x.desk.itemOf(id, "a")
	v.Number, v.Essay = fmt.Sprint(canaryPlaintext, id), strings.Repeat(canaryPlaintext, 3_000)
	v.Photo = []byte(v.Essay)
	return v
}

// verdict fails the test for what was found, or if too little was looked at.
func (x *sensitive) verdict(t *testing.T, least map[string]int) {
	t.Helper()
	x.Verdict(t, least)
	x.search("value", fmt.Sprint(struct{ s string }{canaryPlaintext}), x.plain) // the canary sings
	if len(x.Take()) != 1 {
		t.Error("nothing is ever found")
	}
}

// libraryPackages are the packages whose exported types are looked at.
var libraryPackages = []string{"entity", "tables", "patterns/driver", "compoundkey", "patterns", "eventual", "eventual/archive", "intrapartition", "interpartition", "indexentities", "denormalization", "logtail", "highvolumedelete",
	"dataseries", "widentities", "largeentities", "scatter", "logdata", "heterogeneous", "relationships", "encryption", "access", "backup"}

// exportedTypes are the names that the packages export for types.
func exportedTypes(t *testing.T) (names []string) {
	t.Helper()
	for _, pkg := range libraryPackages {
		files := assert.Must[[]os.DirEntry](t)(os.ReadDir("../../" + pkg))
		for _, file := range files {
			if !strings.HasSuffix(file.Name(), ".go") || strings.HasSuffix(file.Name(), "_test.go") {
				continue
			}
			parsed := assert.Must[*ast.File](t)(parser.ParseFile(token.NewFileSet(), "../../"+pkg+"/"+file.Name(), nil, parser.SkipObjectResolution))
			for _, decl := range parsed.Decls {
				g, ok := decl.(*ast.GenDecl)
				if !ok || g.Tok != token.TYPE {
					continue
				}
				for _, spec := range g.Specs {
					// An alias names a type of another package.
					if name := spec.(*ast.TypeSpec).Name; name.IsExported() && !spec.(*ast.TypeSpec).Assign.IsValid() {
						names = append(names, path.Base(pkg)+"."+name.Name)
					}
				}
			}
		}
	}
	return names
}
