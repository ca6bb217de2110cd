package jsonscan

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// texts are the seeds of the fuzz targets: what every rule of the scanner decides about.
var texts = []string{
	``, ` `, `{}`, `[]`, ` { } `, "[\t1 ,\r\n2 ]", `{"a":1,"b":[true,false,null],"c":{"d":"e"}}`, `"a" "b"`, `{"a":1}{"a":1}`, `1 2`, `12`, `1true`,
	`{`, `[`, `}`, `]`, `{]`, `[}`, `{"a"}`, `{"a":}`, `{"a" 1}`, `{"a":1,}`, `{"a":1 "b":2}`, `{,}`, `{1:2}`, `[1,]`, `[,1]`, `[1 2]`, `[1:2]`, `{"a":1}}`, `[]]`, `,`, `:`, `{"a"::1}`,
	`{"a":1,"a":2}`, `{"a":1,"\u0061":2}`, `{"\ud800":1,"\udfff":2}`, `{"\ud800":1,"a":2}`, `[{"a":{"b":1,"b":1}}]`, `{"a":{"a":1},"b":{"a":1}}`,
	`true`, `tru`, `truE`, `false`, `fals`, `null`, `nul`, `nulll`, `True`, `NaN`,
	`0`, `-0`, `01`, `-`, `-a`, `1.`, `1.5`, `.5`, `1e5`, `1E+5`, `1e-05`, `1e`, `1e+`, `1.e5`, `+1`, `0x1`, `1_0`, `-1.25e+300`, `00`,
	`"`, `"a`, `"\`, `"\"`, `"\\"`, `"\/\b\f\n\r\t\""`, `"\x"`, `"\u"`, `"\u00e"`, `"\u00e9\u00E9"`, `"\u00g9"`, `"\U0001F600"`, "\"\n\"", "\"\x00\"", "\"\x1f\"", "\"\x7f\"",
	`"\ud83d\ude00"`, `"\uD83D\uDE00"`, `"\ud83d"`, `"\ude00"`, `"\ude00\ud83d"`, `"\ud83d\ud83d\ude00"`, `"\ud83d\u0041"`, `"\ud83dA"`, `"\ud83d\n"`, `"\ud83d\ude0"`, `"\\ud83d"`, `["\ud83d"]`,
	`"é 漢 😀"`, "\"\xff\"", "\"\xc3\"", "\"\xc3\xa9\xff\"", "\"\xed\xa0\x80\"", "\"\xf4\x90\x80\x80\"", "\"\xc0\x80\"", "\"\xef\xbf\xbd\"", "\xef\xbb\xbf{}", "{\"\xff\":1}", "\xff", "[1]\xff", "\u00a01",
	`{"odata.metadata":"m","value":[{"odata.etag":"W/\"1\"","PartitionKey":"p","RowKey":"r","Timestamp":"2026-11-20T08:30:00.1Z","A":1,"B@odata.type":"Edm.Int64","B":"2"}]}`,
	`"01234567"`, `"012345678"`, `"0123456\"8"`, `"01234567890123\u0041"`, `"0123456é"`, "\"0123456789abc\x01\"",
}

// FuzzValue holds that what the scanner accepts, one value, is what jsontext accepts by the same rules, and that it finds the same texts in
// it: jsontext is slower, and the reference for what is JSON.
func FuzzValue(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(checkValue)
}

// TestDepth: the scanner accepts a value as deep as jsontext does, whatever Step has opened before, and no deeper. These texts are too long
// to be the seeds of a fuzz target.
func TestDepth(t *testing.T) {
	for _, depth := range []int{maxDepth, maxDepth + 1} {
		lists, objects := strings.Repeat("[", depth)+strings.Repeat("]", depth), strings.Repeat(`{"a":`, depth)+"1"+strings.Repeat("}", depth)
		checkValue(t, []byte(lists))
		checkValue(t, []byte(objects))
		checkTokens(t, []byte(lists), 3)
		checkTokens(t, []byte(objects), 1)
	}
}

func checkValue(t *testing.T, text []byte) {
	whole := utf8.Valid(text) && jsontext.Value(text).IsValid(jsontext.AllowInvalidUTF8(true)) // IsValid with the option lets halves pass
	s := New(text)
	kind := s.Peek()
	raw, err := s.Value()
	if err == nil {
		if got := KindOf(raw); got != kind {
			t.Errorf("the value begins with %s, and Peek returned %s", got, kind)
		}
		err = s.End()
	}
	if (err == nil) != whole {
		t.Fatalf("%q: the error is %v; jsontext accepts the text: %v", text, err, whole)
	}
	if err != nil {
		return
	}
	if strict := jsontext.Value(text).IsValid(); s.Half == strict {
		t.Errorf("%q: halves %v; jsontext finds none: %v", text, s.Half, strict)
	}
	if trimmed := bytes.Trim(text, " \t\r\n"); !bytes.Equal(raw, trimmed) {
		t.Errorf("%q: the value is %q", text, raw)
	}
	if kind == '"' {
		checkUnquoted(t, &s, raw)
	}
}

func checkUnquoted(t *testing.T, s *Scanner, raw []byte) {
	t.Helper()
	want, err := jsontext.AppendUnquote(nil, raw)
	if got := Unquote([]byte("-"), raw); string(got) != "-"+string(want) || (err != nil) != s.Half {
		t.Errorf("%s: %q; jsontext reads %q, %v", raw, got, want, err)
	}
	if !s.Escaped && string(want) != string(raw[1:len(raw)-1]) {
		t.Errorf("%s: no escape was found", raw)
	}
}

// FuzzTokens holds that the scanner and jsontext take the same steps through a text, with values read whole or entered. deep has a bit for
// each object and array: whether to enter it.
func FuzzTokens(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text), uint64(0))
		f.Add([]byte(text), uint64(7))
		f.Add([]byte(text), ^uint64(0))
	}
	f.Fuzz(checkTokens)
}

func checkTokens(t *testing.T, text []byte, deep uint64) {
	if !utf8.Valid(text) {
		return // FuzzValue shows that no value may be so; jsontext is asked to let it pass
	}
	s := New(text)
	d := jsontext.NewDecoder(bytes.NewBuffer(text), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	for {
		kind, want := s.Peek(), d.PeekKind()
		if kind == 0 { // PeekKind returns the kind also of a token that may not be there, and ReadToken the error
			checkEnd(t, &s, d)
			return
		}
		if kind != Kind(want) {
			t.Fatalf("at byte %d the kind is %s; jsontext finds %s at byte %d", s.at, kind, want, d.InputOffset())
		}
		enter := kind == '{' || kind == '['
		if enter {
			enter, deep = deep&1 == 1 && s.depth < maxOpen, deep>>1
		}
		if enter || kind == '}' || kind == ']' {
			err := s.Step()
			if _, wantErr := d.ReadToken(); err != nil || wantErr != nil {
				t.Fatalf("the error is %v; jsontext returns %v", err, wantErr)
			}
			continue
		}
		raw, err := s.Value()
		wantRaw, wantErr := d.ReadValue()
		if wantErr == nil && (want == '{' || want == '[') && !wantRaw.IsValid(jsontext.AllowInvalidUTF8(true)) {
			wantErr = ErrRepeatedName
		}
		if (err != nil) != (wantErr != nil) || err == nil && (!bytes.Equal(raw, wantRaw) || s.at != int(d.InputOffset())) {
			t.Fatalf("the value is %q, %v; jsontext reads %q, %v", raw, err, wantRaw, wantErr)
		}
		if err != nil {
			return
		}
		if kind == '"' {
			checkUnquoted(t, &s, raw)
		}
	}
}

// checkEnd holds that where no token follows both say so, or both say that the text is wrong.
func checkEnd(t *testing.T, s *Scanner, d *jsontext.Decoder) {
	t.Helper()
	_, want := d.ReadToken()
	if err := s.End(); want == nil || (err == nil) != (want == io.EOF) {
		t.Fatalf("at the end the error is %v; jsontext returns %v", err, want)
	}
	assert.Error(t, s.Step(), "Step goes on behind the end")
	assert.Error(t, assert.Err(s.Value()), "Value goes on behind the end")
}

// TestErrorsHaveNoExcerpt: what is not JSON may be a part of a secret, so the error has only its place.
func TestErrorsHaveNoExcerpt(t *testing.T) {
	for text, want := range map[string]SyntaxError{`{"a":secret}`: {5}, `["secret` + "\n": {8}, `{"a":1 secret`: {7}, `"secret`: {7}, `[1,]`: {3}} {
		s := New([]byte(text))
		_, err := s.Value()
		if got, ok := errors.AsType[SyntaxError](err); !ok || got != want || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v, want byte %d", text, err, want.At)
		}
	}
}

// TestPlainFindsTheFirst puts each byte into each place of a text of plain ones, with every other byte that ends a run behind it.
func TestPlainFindsTheFirst(t *testing.T) {
	random := rand.New(rand.NewPCG(5, 6))
	for c := range 256 {
		for at := range 20 {
			b := bytes.Repeat([]byte{'a'}, 20)
			for i := at + 1; i < len(b); i++ {
				b[i] = byte(random.Uint32())
			}
			b[at] = byte(c)
			stops := c < ' ' || c >= utf8.RuneSelf || c == '"' || c == '\\'
			if got := plain(b, 0); stops && got != at || !stops && got <= at {
				t.Fatalf("%q: %d, byte %#x is at %d", b, got, c, at)
			}
		}
	}
}

// TestKindString: each kind has the name by which errors call it.
func TestKindString(t *testing.T) {
	for kind, want := range map[Kind]string{'"': "string", '0': "number", 't': "true", 'f': "false", 'n': "null", '{': "{", ']': "]", 0: "no token"} {
		assert.Equal(t, kind.String(), want, kind)
	}
}
