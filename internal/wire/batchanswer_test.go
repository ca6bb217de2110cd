package wire

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/kinds"
)

const testContent = "multipart/mixed; boundary=batchresponse_1"

func testAnswer(newline string, parts ...string) string {
	var b strings.Builder
	b.WriteString("--batchresponse_1\nContent-Type: multipart/mixed; boundary=changesetresponse_2\n\n")
	for _, part := range parts {
		b.WriteString("--changesetresponse_2\nContent-Type: application/http\nContent-Transfer-Encoding: binary\n\n" + part + "\n")
	}
	b.WriteString("--changesetresponse_2--\n--batchresponse_1--\n")
	return strings.ReplaceAll(b.String(), "\n", newline)
}

func testOK(etag string) string {
	if etag == "" {
		return "HTTP/1.1 204 No Content\nDataServiceVersion: 1.0;\n\n"
	}
	return "HTTP/1.1 204 No Content\nDataServiceVersion: 1.0;\netag: " + etag + "\n\n"
}

func testFailure(status int, code, message string) string {
	return fmt.Sprintf("HTTP/1.1 %d x\nContent-Type: application/json\n\n", status) +
		`{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":"` + message + `"}}}`
}

func TestParseBatchAnswer(t *testing.T) {
	for _, c := range []struct {
		what  string
		n     int
		parts []string
		etags []string
		index int
		code  string
	}{
		{"three successes", 3, []string{testOK(`W/"1"`), testOK(""), testOK(`W/"3"`)}, []string{`W/"1"`, "", `W/"3"`}, 0, ""},
		{"one success", 1, []string{testOK(`W/"1"`)}, []string{`W/"1"`}, 0, ""},
		{"an index", 100, []string{testFailure(409, "EntityAlreadyExists", "42:The specified entity already exists.")}, nil, 42, "EntityAlreadyExists"},
		{"the last index", 100, []string{testFailure(412, "UpdateConditionNotSatisfied", "99:x")}, nil, 99, "UpdateConditionNotSatisfied"},
		{"a lone operation", 1, []string{testFailure(404, "ResourceNotFound", "The specified resource does not exist.")}, nil, 0, "ResourceNotFound"},
		{"no index", 5, []string{testFailure(400, "InvalidInput", "x: y")}, nil, -1, "InvalidInput"},
		{"an index out of range", 5, []string{testFailure(400, "InvalidInput", "5:x")}, nil, -1, "InvalidInput"},
		{"a negative index", 5, []string{testFailure(400, "InvalidInput", "-1:x")}, nil, -1, "InvalidInput"},
		{"a second part that failed", 5, []string{testOK(`W/"1"`), testFailure(400, "InvalidInput", "x")}, nil, 1, "InvalidInput"},
		{"a failure after all", 2, []string{testOK(`W/"1"`), testOK(`W/"2"`), testFailure(400, "InvalidInput", "x")}, nil, -1, "InvalidInput"},
		{"an error without body", 5, []string{"HTTP/1.1 503 x\n\n"}, nil, -1, ""},
	} {
		for _, newline := range []string{"\r\n", "\n"} {
			answer, err := ParseBatchAnswer(testContent, []byte(testAnswer(newline, c.parts...)), c.n)
			if err != nil {
				t.Errorf("%s: %v", c.what, err)
				continue
			}
			if c.etags != nil {
				if answer.Failure != nil || fmt.Sprint(answer.ETags) != fmt.Sprint(c.etags) {
					t.Errorf("%s: %+v", c.what, answer)
				}
				continue
			}
			if f := answer.Failure; f == nil || f.Index != c.index || f.Code != c.code || answer.ETags != nil {
				t.Errorf("%s: %+v", c.what, f)
			}
		}
	}
}

func TestParseBatchAnswerRefuses(t *testing.T) {
	good := testAnswer("\r\n", testOK(`W/"1"`), testOK(`W/"2"`))
	for what, c := range map[string]struct{ contentType, body string }{
		"no content type": {"", good}, "no boundary": {"multipart/mixed", good}, "an empty boundary": {"multipart/mixed; boundary=", good},
		"another boundary": {"multipart/mixed; boundary=x", good}, "JSON": {testContent, `{"odata.error":{"code":"InternalError"}}`}, "nothing": {testContent, ""},
		"a page of a proxy": {"text/html", "<html>"}, "an answer too few": {testContent, testAnswer("\r\n", testOK(`W/"1"`))}, "none": {testContent, testAnswer("\r\n")},
		"an answer too many": {testContent, testAnswer("\r\n", testOK(`W/"1"`), testOK(`W/"2"`), testOK(`W/"3"`))},
		"status 100":         {testContent, testAnswer("\r\n", strings.Replace(testOK(`W/"1"`), "204", "100", 1), testOK(`W/"2"`))},
		"status 301":         {testContent, testAnswer("\r\n", strings.Replace(testOK(`W/"1"`), "204", "301", 1), testOK(`W/"2"`))},
		"status 999":         {testContent, testAnswer("\r\n", strings.Replace(testOK(`W/"1"`), "204", "999", 1), testOK(`W/"2"`))},
		"status -20":         {testContent, testAnswer("\r\n", strings.Replace(testOK(`W/"1"`), "204", "-20", 1), testOK(`W/"2"`))},
		"two change sets":    {testContent, "--batchresponse_1\n\n--x\n--x--\n--batchresponse_1\n\n--x\n--x--\n--batchresponse_1--\n"},
	} {
		if answer, err := ParseBatchAnswer(c.contentType, []byte(c.body), 2); !errors.Is(err, kinds.ErrCutOff) {
			t.Errorf("%s: %+v, %v", what, answer, err)
		}
	}
}

// FuzzParseBatchAnswer: no panic, and what is accepted is complete and of an operation that there is.
func FuzzParseBatchAnswer(f *testing.F) {
	f.Add(testContent, testAnswer("\r\n", testOK(`W/"1"`), testOK("")), 2)
	f.Add(testContent, testAnswer("\n", testFailure(409, "EntityAlreadyExists", "1:x")), 2)
	f.Add(`multipart/mixed; boundary="b"; x=y`, "--b\nContent-Type: multipart/mixed; boundary=c\n\n--c\n\nHTTP/1.1 200\n\n--c--\n--b--", 1)
	f.Add("boundary=-", "-------", 0)
	f.Fuzz(func(t *testing.T, contentType, body string, n int) {
		if n < 0 || n > 200 {
			return
		}
		answer, err := ParseBatchAnswer(contentType, []byte(body), n)
		if err != nil {
			assert.ErrorIs(assert.Fatal(t), err, kinds.ErrCutOff)
			return
		}
		if answer.Failure == nil && len(answer.ETags) != n {
			t.Fatalf("%d ETags of %d operations", len(answer.ETags), n)
		}
		if g := answer.Failure; g != nil && (g.Index < -1 || g.Index >= n || g.Status < 400 || g.Status > 599) {
			t.Fatalf("%+v", g)
		}
	})
}

func TestIsETag(t *testing.T) {
	for text, want := range map[string]bool{
		`W/"datetime'2024-05-06T07%3A08%3A09.1234567Z'"`: true, `"x"`: true, `W/"x"`: true,
		"": false, `"`: false, `""`: false, `W/`: false, `W/"`: false, "x": false, "*": false, `W/"x`: false, `x"`: false, `"a"b"`: false, "\"a b\"": false, "\"a\x00\"": false, "\"é\"": false, `W/W/"x"`: false,
	} {
		assert.Equal(t, IsETag(text), want, "%q", text)
	}
}
