package tables_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The tests of this file give answers that are cut off, or damaged in one byte, at every byte. Answers are whole
// HTTP/1.1 messages, so that status line and headers are damaged too.

const (
	garbledETag     = `W/"datetime'2024-05-06T07%3A08%3A09.1234567Z'"`
	garbledNotFound = `{"odata.error":{"code":"ResourceNotFound","message":{"lang":"en-US","value":"The specified resource does not exist."}}}`
	garbledRow      = `{"odata.etag":"W/\"datetime'2024-05-06T07%3A08%3A09.1234567Z'\"","PartitionKey":"p","RowKey":"r","Timestamp":"2024-05-06T07:08:09.1234567Z",` +
		`"Name":"J\u00f6rg \"J\" é","Count@odata.type":"Edm.Int64","Count":"9007199254740993","Small":-7,"Half":0.5,"Big@odata.type":"Edm.Double","Big":"Infinity",` +
		`"At@odata.type":"Edm.DateTime","At":"2024-05-06T07:08:09Z","Id@odata.type":"Edm.Guid","Id":"c9da6455-213d-42c9-9a79-3e9149a57833",` +
		`"Photo@odata.type":"Edm.Binary","Photo":"AAH/","Good":true}`
	garbledPage = `{"odata.metadata":"http://table.test/$metadata#T","value":[` + garbledRow + `,` + garbledRow + `]}`
)

func message(status, contentType, body string, length bool) string {
	m := "HTTP/1.1 " + status + "\r\nContent-Type: " + contentType + "\r\nETag: " + garbledETag + "\r\n"
	if length {
		m += fmt.Sprintf("Content-Length: %d\r\n", len(body))
	}
	return m + "\r\n" + body
}

// garbledCall is one operation, and the answer it understands.
type garbledCall struct {
	name   string
	answer string
	write  bool
	// whole is how much of the answer must be there for a success: what follows says nothing new.
	whole func(answer string) int
	run   func(*tables.Table) error
}

func wholeAnswer(answer string) int { return len(answer) }
func wholeHead(answer string) int   { return strings.Index(answer, "\r\n\r\n") + 4 }
func wholeBatch(answer string) int  { return strings.LastIndex(answer, "--") + 2 }

func garbledCalls() []garbledCall {
	ctx := context.Background()
	get := func(t *tables.Table) error {
		e, err := t.Entities().Get(ctx, tables.Key{Partition: "p", Row: "r"})
		if err == nil && (e.Key != tables.Key{Partition: "p", Row: "r"}) {
			return fmt.Errorf("success with another row's key %q", e.Key)
		}
		if err == nil && !strings.HasSuffix(string(e.ETag), `"`) {
			return fmt.Errorf("success with the ETag %q", e.ETag)
		}
		return err
	}
	page := func(t *tables.Table) error {
		p, err := t.Entities().Query().Partition("p").Page(ctx, "")
		if err == nil && len(p.Problems) > 0 {
			return p.Problems[0]
		}
		if err == nil && len(p.Items) != 2 {
			return fmt.Errorf("success with %d items", len(p.Items))
		}
		for _, e := range p.Items {
			if !strings.HasSuffix(string(e.ETag), `"`) {
				return fmt.Errorf("success with the ETag %q", e.ETag)
			}
		}
		return err
	}
	insert := func(t *tables.Table) error {
		e := harness.Row("p", "r", tables.Property{Name: "N", Value: tables.Int32(1)})
		err := t.Entities().Insert(ctx, e)
		if err == nil && !strings.HasSuffix(string(e.ETag), `"`) {
			return fmt.Errorf("success with the ETag %q", e.ETag)
		}
		return err
	}
	batch := func(t *tables.Table) error {
		x := t.NewTransaction()
		x.Insert(harness.Row("p", "a"))
		x.Insert(harness.Row("p", "b"))
		etags, err := x.Commit(ctx)
		for _, etag := range etags {
			if !strings.HasSuffix(string(etag), `"`) {
				return fmt.Errorf("success with the ETags %q", etags)
			}
		}
		return err
	}
	const jsonType = "application/json;odata=minimalmetadata"
	exists := `{"odata.error":{"code":"EntityAlreadyExists","message":{"lang":"en-US","value":"The specified entity already exists."}}}`
	deleted := strings.Replace(exists, "EntityAlreadyExists", "TableBeingDeleted", 1)
	calls := []garbledCall{{name: "insert", answer: message("204 No Content", jsonType, "", true), write: true, whole: wholeHead, run: insert}}
	for _, length := range []bool{true, false} {
		calls = append(calls,
			garbledCall{"get", message("200 OK", jsonType, garbledRow, length), false, wholeAnswer, get},
			garbledCall{"page", message("200 OK", jsonType, garbledPage, length), false, wholeAnswer, page},
			garbledCall{"get, not found", message("404 Not Found", jsonType, garbledNotFound, length), false, wholeAnswer, get},
			garbledCall{"insert, exists", message("409 Conflict", jsonType, exists, length), true, wholeAnswer, insert},
			garbledCall{"insert, being deleted", message("409 Conflict", jsonType, deleted, length), true, wholeAnswer, insert},
			garbledCall{"batch", message("202 Accepted", batchContent, batchAnswer(batchOK, batchOK), length), true, wholeBatch, batch},
			garbledCall{"batch, exists", message("202 Accepted", batchContent, batchAnswer(batchExists), length), true, wholeBatch, batch},
			garbledCall{"batch, table being deleted", message("409 Conflict", jsonType, deleted, length), true, wholeAnswer, batch},
		)
	}
	return calls
}

// garbledTable is a table whose service gives the damaged answer, and to the reads that look for a lost write the
// answer that there is no such row.
func garbledTable(t testing.TB, write bool, answer *string) *tables.Table {
	service := func(req *http.Request) (*http.Response, error) {
		text := *answer
		if write && req.Method == http.MethodGet {
			text = message("404 Not Found", "application/json", garbledNotFound, true)
		}
		return http.ReadResponse(bufio.NewReader(strings.NewReader(text)), req)
	}
	return harness.InProcess(t, service).Table("Employees")
}

// try runs the call and turns a panic into a test failure.
func (c *garbledCall) try(t *testing.T, table *tables.Table, what string) (err error) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil {
			t.Errorf("%s: %s: panic: %v", c.name, what, p)
			err = errors.New("panic")
		}
	}()
	err = c.run(table)
	var typed *tables.Error
	if err != nil && !errors.As(err, &typed) {
		t.Errorf("%s: %s: untyped: %v", c.name, what, err)
	}
	return err
}

// TestCutOffAnswers: a cut is always seen, whether or not HTTP tells the length.
func TestCutOffAnswers(t *testing.T) {
	for _, c := range garbledCalls() {
		var text string
		table := garbledTable(t, c.write, &text)
		text = c.answer
		intact := c.try(t, table, "intact")
		points, whole := 0, c.whole(c.answer)
		for i := range len(c.answer) {
			if i >= whole && !strings.Contains(c.answer, "Content-Length") {
				break
			}
			points++
			text = c.answer[:i]
			what := fmt.Sprintf("cut at %d of %d", i, len(c.answer))
			err := c.try(t, table, what)
			switch {
			case err == nil && i < whole:
				t.Errorf("%s: %s: success", c.name, what)
			case c.write && i < whole && intact == nil && !errors.Is(err, tables.ErrUnknownOutcome):
				t.Errorf("%s: %s: %v, want ErrUnknownOutcome", c.name, what, err)
			case intact != nil && errors.Is(err, tables.ErrUnavailable): // the code of a refusal is cut off, which leaves what a gateway sends
			case err != nil && !errors.Is(err, tables.ErrUnknownOutcome) && !errors.Is(err, tables.ErrGarbled) && !sameKind(err, intact):
				// What HTTP itself sees is the transport's error, which is ErrUnavailable for a read.
				if c.write || !errors.Is(err, io.ErrUnexpectedEOF) && i >= wholeHead(c.answer) {
					t.Errorf("%s: %s: %v, intact it is %v", c.name, what, err, intact)
				}
			}
		}
		t.Logf("%s: %d cuts; intact: %v", c.name, points, intact)
	}
}

func sameKind(a, b error) bool {
	var x, y *tables.Error
	return errors.As(a, &x) && errors.As(b, &y) && x.Kind == y.Kind
}

// TestDamagedAnswers: one byte damaged may give another value, which nobody can see, but never a panic, an untyped
// error, another row's key, a missing ETag, or a write's failure as its success.
func TestDamagedAnswers(t *testing.T) {
	for _, c := range garbledCalls() {
		var text string
		table := garbledTable(t, c.write, &text)
		text = c.answer
		intact := c.try(t, table, "intact")
		seen, unseen := 0, 0
		for i := range len(c.answer) {
			damaged := []string{c.answer[:i] + c.answer[i+1:]}
			for _, flip := range []byte{0x01, 0x04, 0x20, 0x80} {
				damaged = append(damaged, c.answer[:i]+string([]byte{c.answer[i] ^ flip})+c.answer[i+1:])
			}
			if harness.Shortened() {
				damaged = damaged[i%len(damaged):][:1]
			}
			for _, text = range damaged {
				err := c.try(t, table, fmt.Sprintf("damaged at %d: %.60q", i, text[max(0, i-20):]))
				if err == nil && intact != nil && i > wholeHead(c.answer) {
					t.Errorf("%s: damaged at %d: %v became a success", c.name, i, intact)
				}
				if err == nil {
					unseen++
				} else {
					seen++
				}
			}
		}
		t.Logf("%s: %d damages seen, %d not", c.name, seen, unseen)
	}
}

// TestSDKDefectCutOffTransactionAnswers compares the two on answers that end early without HTTP telling so.
func TestSDKDefectCutOffTransactionAnswers(t *testing.T) {
	ctx := context.Background()
	answer := batchAnswer(batchOK, batchOK)
	failed := batchAnswer(batchExists)
	var text string
	service := func(req *http.Request) (*http.Response, error) {
		if req.Method == http.MethodGet {
			return harness.Reply(req, http.StatusNotFound, garbledNotFound), nil
		}
		return harness.Reply(req, http.StatusAccepted, text, "Content-Type", batchContent), nil
	}
	client := bareInProcess(t, service)
	table := harness.InProcess(t, service).Table("Employees")
	action := func(row string) aztables.TransactionAction {
		return aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"p","RowKey":"` + row + `"}`)}
	}
	for name, answer := range map[string]string{"success": answer, "failure": failed} {
		var successes, panicked, refused int
		for i := range wholeBatch(answer) {
			text = answer[:i]
			var err error
			switch {
			case panics(func() {
				_, err = client.SubmitTransaction(ctx, []aztables.TransactionAction{action("a"), action("b")}, nil)
			}):
				panicked++
			case err == nil:
				successes++
			default:
				refused++
			}
			x := table.NewTransaction()
			x.Insert(harness.Row("p", "a"))
			x.Insert(harness.Row("p", "b"))
			_, err = x.Commit(ctx)
			harness.WantKind(t, err, tables.ErrUnknownOutcome)
		}
		t.Logf("of a %s's answer cut at %d bytes the SDK takes %d for success, refuses %d and panics at %d", name, wholeBatch(answer), successes, refused, panicked)
		if successes == 0 {
			fixed(t, "a transaction's answer that is cut off can come back as success")
		}
		if panicked == 0 {
			fixed(t, "a transaction's answer that is cut off can panic")
		}
	}
}

// TestUnexpectedStatuses: an answer of a status that does not belong to the operation never panics, and of a write
// proves nothing unless it is a refusal.
func TestUnexpectedStatuses(t *testing.T) {
	expected := map[string][]int{"insert": {201, 204}, "batch": {202}, "get": {200}, "page": {200}}
	for _, c := range garbledCalls() {
		success, ok := expected[c.name]
		if !ok || strings.Contains(c.answer, "Content-Length") != (c.name == "insert") {
			continue
		}
		var text string
		table := garbledTable(t, c.write, &text)
		_, rest, _ := strings.Cut(c.answer, "\r\n")
		for status := 100; status < 600; status++ {
			text = fmt.Sprintf("HTTP/1.1 %d x\r\n%s", status, rest)
			err := c.try(t, table, fmt.Sprint(status))
			if slices.Contains(success, status) != (err == nil) {
				t.Errorf("%s: status %d: %v", c.name, status, err)
			}
			if status >= 400 && status < 500 && status != http.StatusRequestTimeout || status == http.StatusNotImplemented || err == nil || !c.write {
				continue
			}
			assert.ErrorIs(t, err, tables.ErrUnknownOutcome, "%s: status %d", c.name, status)
		}
	}
}
