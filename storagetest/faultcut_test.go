package storagetest

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// cutAnswer has a cut meet an answer, and returns what the client reads.
func cutAnswer(t *testing.T, cut Cut, method string, answer *http.Response) (string, *http.Response, error) {
	t.Helper()
	faults := NewFaults(transporter(func(*http.Request) (*http.Response, error) { return answer, nil }), cut)
	resp, err := faults.Do(httptest.NewRequest(method, "http://a.blob.test/c/b", nil))
	if err != nil {
		return "", nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return string(body), resp, err
}

// answering makes an answer, with or without a length that is known beforehand.
func answering(body string, known bool) *http.Response {
	resp := &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), ContentLength: -1}
	if known {
		resp.ContentLength = int64(len(body))
		resp.Header.Set("Content-Length", strconv.Itoa(len(body)))
	}
	return resp
}

func TestCutAtAnyByte(t *testing.T) {
	const body = "0123456789"
	for _, known := range []bool{true, false} {
		for n := range int64(len(body) + 1) {
			for _, cut := range []Cut{CutAnswer(n), CutSilently(n)} {
				got, resp, err := cutAnswer(t, cut, http.MethodGet, answering(body, known))
				assert.Equal(t, got, body[:n], "%v, length known: %v", cut, known)
				if cut.silent != (err == nil) || !cut.silent && !errors.Is(err, io.ErrUnexpectedEOF) {
					t.Errorf("%v, length known: %v: error %v", cut, known, err)
				}
				short := cut.silent && n < int64(len(body))
				if short && (resp.ContentLength != -1 || resp.Header.Get("Content-Length") != "") {
					t.Errorf("%v: the answer tells its length, %d", cut, resp.ContentLength)
				}
			}
		}
	}
}

func TestCutPositions(t *testing.T) {
	const body = "0123456789"
	for _, known := range []bool{true, false} {
		for cut, want := range map[Cut]string{
			CutAnswerAt(0.5): "01234", CutAnswerAt(0): "", CutAnswerAt(0.99): "012345678", CutAnswer(-1): "012345678",
			CutAnswer(-10): "", CutAnswer(-11): "", CutAnswer(99): body,
			CutSilentlyAt(0.5): "01234", CutSilently(-1): "012345678", CutSilently(99): body, CutSilentlyAt(1): body,
		} {
			got, _, err := cutAnswer(t, cut, http.MethodGet, answering(body, known))
			if got != want || cut.silent != (err == nil) {
				t.Errorf("%v, length known: %v: %q, %v", cut, known, got, err)
			}
		}
	}
}

// Without a body there is the head to lose, or nothing.
func TestCutWithoutABody(t *testing.T) {
	for method, answer := range map[string]func() *http.Response{
		http.MethodPut:    func() *http.Response { return &http.Response{StatusCode: 201, Body: http.NoBody} },
		http.MethodDelete: func() *http.Response { return &http.Response{StatusCode: 204, Body: http.NoBody, ContentLength: -1} },
		http.MethodHead:   func() *http.Response { return &http.Response{StatusCode: 200, Body: http.NoBody, ContentLength: 99} },
	} {
		if _, resp, err := cutAnswer(t, CutAnswer(0), method, answer()); !errors.Is(err, io.ErrUnexpectedEOF) || resp != nil {
			t.Errorf("%s: %v, %v", method, resp, err)
		}
		if _, resp, err := cutAnswer(t, CutSilently(0), method, answer()); err != nil || resp == nil {
			t.Errorf("%s, silently: %v, %v", method, resp, err)
		}
	}
}

// endless is a body that must not be read to its end.
type endless struct{ read int64 }

func (e *endless) Read(p []byte) (int, error) { e.read += int64(len(p)); return len(p), nil }

// A cut by bytes does not hold the body, however long it is; nor does one by a part of a length that is known.
func TestCutStreams(t *testing.T) {
	for _, cut := range []Cut{CutAnswer(1 << 20), CutSilently(1 << 20), CutAnswerAt(0.25)} {
		source := &endless{}
		answer := &http.Response{StatusCode: 200, Body: io.NopCloser(source), ContentLength: 4 << 20}
		faults := NewFaults(transporter(func(*http.Request) (*http.Response, error) { return answer, nil }), cut)
		resp, err := faults.Do(httptest.NewRequest(http.MethodGet, "http://a.blob.test/c/b", nil))
		assert.Check(t, err)
		assert.Equal(t, source.read, 0, "%v: bytes are read before the client asks for any", cut)
		n, err := io.Copy(io.Discard, struct{ io.Reader }{resp.Body})
		if n != 1<<20 || cut.silent != (err == nil) || source.read > 2<<20 {
			t.Errorf("%v: %d bytes, %v, and %d read from the service", cut, n, err, source.read)
		}
	}
}

func TestCutPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	faults := NewFaults(transporter(func(*http.Request) (*http.Response, error) { return nil, broken }), CutAnswer(0))
	assert.Equal(t, assert.Err(faults.Do(httptest.NewRequest(http.MethodGet, "http://a.blob.test/c/b", nil))), broken)
	answer := answering("", false)
	answer.Body = io.NopCloser(io.MultiReader(bytes.NewReader([]byte("x")), errorReader{broken}))
	if _, _, err := cutAnswer(t, CutAnswer(-1), http.MethodGet, answer); err != broken {
		t.Error(err)
	}
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
