package conformance

import (
	"context"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func accessCases() []script {
	return []script{{"requests without the right to", unsigned}}
}

// afterwards is a test whose context has not ended yet, for what is done when it has.
type afterwards struct{ testing.TB }

func (afterwards) Context() context.Context { return context.Background() }

func unsigned(w *world) {
	table, queue, container := w.newTable(), w.newQueue(), w.newContainer()
	for _, c := range []struct {
		name string
		s    service
		path string
	}{{"table", tables, "/" + table + "()"}, {"queue", queues, "/" + queue + "/messages"}, {"blob", blobs, "/" + container + "/b"}} {
		w.without(c.name+" without a signature", "401 NoAuthenticationInformation", c.s, c.path)
		w.without(c.name+" with another signature", "403 AuthenticationFailed", c.s, c.path,
			"Authorization", map[bool]string{true: "SharedKeyLite ", false: "SharedKey "}[c.s == tables]+w.AccountName+":AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=")
	}
}

// without sends a request that it does not sign.
func (w *world) without(name, want string, s service, path string, headers ...string) {
	w.Helper()
	resp, body, err := w.send(w.Context(), request{service: s, method: "GET", path: path, headers: headers})
	assert.Check(w, err)
	w.steps = append(w.steps, step{name, want, fieldsOf(resp, body, w.replacer())})
}
