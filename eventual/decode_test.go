package eventual_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// hired is what another program, which writes names in lower case, may tell a handler.
type hired struct {
	Department string
	ID         int
	Full_name  string
	Manager    *hired `json:"manager"`
}

// tick has nothing that must be there.
type tick struct {
	Full bool `json:",omitzero"`
}

// TestDecodeMatchesNames: names of members match as encoding/json matches them.
func TestDecodeMatchesNames(t *testing.T) {
	for _, body := range []string{
		`{"department":"Sales","id":7}`, `{"DEPARTMENT":"Sales","Id":7,"more":1}`, `{"Department":"Sales","MANAGER":{"id":3}}`,
		`{"full_name":"June"}`, `{"fullname":"June","id":1}`, `{"full-name":"June","id":1}`, `{"ıd":1,"id":2}`, `{"department":null}`,
	} {
		var got, want hired
		assert.Check(t, json.Unmarshal([]byte(body), &want))
		assert.Check(t, (&eventual.Message{Type: "hired", Body: []byte(body)}).Decode(&got))
		assert.NoDiff(t, cmp.Diff(want, got), body)
	}
}

// TestDecodeRefusesWhatFillsNothing: a body of which nothing is understood is no message for this handler. What Send
// writes for a value reads back as that value.
func TestDecodeRefusesWhatFillsNothing(t *testing.T) {
	decode := func(body string, v any) error {
		return (&eventual.Message{Type: "hired", Body: []byte(body)}).Decode(v)
	}
	for _, body := range []string{`{}`, ` { } `, `null`, `{"dept":"top secret","number":7}`, `{"":1}`, `{"hired":{"department":"Sales","id":7}}`} {
		for _, v := range []any{new(hired), new(*hired)} {
			err := decode(body, v)
			if body == `null` && cmp.Equal(v, new(*hired)) {
				assert.Check(t, err) // Send writes it for a nil pointer
				continue
			}
			harness.WantKind(t, err, tables.ErrInvalid)
			for _, want := range []string{`"hired"`, "eventual_test.hired", "AllowUnfilled"} {
				if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "secret") {
					t.Errorf("%s into a %T: %v", body, v, err)
				}
			}
		}
	}
	harness.WantKind(t, decode(`{"other":1}`, new(tick)), tables.ErrInvalid)
	harness.WantKind(t, decode(`{"other":1}`, new(struct{})), tables.ErrInvalid)
	for body, v := range map[string]any{`{}`: new(tick), ` { } `: new(struct{}), `{"b":1}`: new(map[string]int), `null`: new(map[string]int), `[]`: new([]int), `7`: new(any),
		`{"x":{"y":1}}`: new(any), `"text"`: new(string), `"2026-11-22T10:00:00Z"`: new(time.Time)} {
		assert.NoError(t, decode(body, v), "%s into a %T", body, v)
	}
}

// TestForeignMessageIsKept: a worker that does not understand a message keeps it on the poison queue, unless an option
// allows messages that fill nothing.
func TestForeignMessageIsKept(t *testing.T) {
	s := storagetest.Open(t)
	for _, c := range []struct {
		body              string
		allow             bool
		handled, poisoned int64
		want              hired
	}{
		{`{"department":"Sales","id":7}`, false, 1, 0, hired{Department: "Sales", ID: 7}},
		{`{"dept":"Sales","number":7}`, false, 0, 1, hired{}},
		{`{"dept":"Sales","number":7}`, true, 1, 0, hired{}},
	} {
		q := newQueue(t, s, nil)
		assert.Check(t, assert.Err(storageQueue(q, "").EnqueueMessage(t.Context(), `{"type":"hired","body":`+c.body+`}`, nil)))
		var got hired
		w := newWorker(t, q, map[string]eventual.Handler{"hired": func(_ context.Context, m *eventual.Message) error { return m.Decode(&got) }},
			&eventual.WorkerOptions{RetryDelay: atOnce, AllowUnfilled: c.allow})
		assert.Must[int](t)(w.Drain(t.Context()))
		if stats := w.Stats(); stats.Handled != c.handled || stats.Poisoned != c.poisoned {
			t.Errorf("%s, allowed %v: %+v", c.body, c.allow, stats)
		}
		assert.NoDiff(t, cmp.Diff(c.want, got), c.body)
		if kept := entries(t, q); int64(len(kept)) != c.poisoned {
			t.Errorf("%s: %d entries on the poison queue", c.body, len(kept))
		}
	}
}
