package simulator_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/blobs"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
	"github.com/tablepatterns/tablepatterns/internal/simulator/queues"
)

// TestDocumentedVersions holds which versions of the protocol the services speak, the newer ones of SDKs to come among them.
func TestDocumentedVersions(t *testing.T) {
	a := accounts.WithTable(t, simulator.Options{BearerToken: "token"})
	for version, status := range map[string]int{"": 200, "2009-09-19": 200, "2019-02-02": 200, "2025-11-05": 200, "2026-04-06": 200, "2031-12-31": 200,
		"2019-02-03": 400, "2008-01-01": 400, "latest": 400, "2031-13-01": 400, "2026-04-06x": 400} {
		var headers []string
		if version != "" {
			headers = []string{"x-ms-version", version}
		}
		code := map[int]string{400: "InvalidHeaderValue"}[status]
		a.Want("GET", "/Employees()", "", status, code, headers...)
		for _, endpoint := range []string{a.QueueEndpoint(), a.BlobEndpoint()} {
			req, _ := http.NewRequestWithContext(t.Context(), "GET", endpoint+"/?comp=list", nil)
			if version != "" {
				req.Header.Set("x-ms-version", version)
			}
			req.Header.Set("Authorization", "Bearer token")
			a.Answer(req).Check(t, endpoint+" "+version, status, code)
		}
	}
}

// TestDocumentedPolicies holds which rights a policy may give, by service, and how long its name may be.
func TestDocumentedPolicies(t *testing.T) {
	body := func(id, permission string) string {
		return `<SignedIdentifiers><SignedIdentifier><Id>` + id + `</Id><AccessPolicy><Permission>` + permission + `</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`
	}
	a := accounts.WithTable(t, simulator.Options{})
	q := queues.New(environment.NewClock(probe.Start()), environment.NewDice(1), &environment.Chaos{})
	b := blobs.New(nil, environment.NewClock(probe.Start()), environment.NewDice(1), &environment.Chaos{})
	queue, blob := probe.Service(q.Serve), probe.Service(b.Serve)
	queue.Want(t, probe.Call{Method: "PUT", Target: "/orders"}, 201, "")
	blob.Want(t, probe.Call{Method: "PUT", Target: "/photos?restype=container"}, 201, "")
	set := func(id, permission string, tableOK, queueOK, containerOK bool, code string) {
		t.Helper()
		outcome := func(ok bool, success int) (int, string) {
			if ok {
				return success, ""
			}
			return 400, code
		}
		status, want := outcome(tableOK, 204)
		a.Want("PUT", "/Employees?comp=acl", body(id, permission), status, want)
		status, want = outcome(queueOK, 204)
		queue.Want(t, probe.Call{Method: "PUT", Target: "/orders?comp=acl", Body: body(id, permission)}, status, want)
		status, want = outcome(containerOK, 200)
		blob.Want(t, probe.Call{Method: "PUT", Target: "/photos?restype=container&comp=acl", Body: body(id, permission)}, status, want)
	}
	const node = "InvalidXmlNodeValue"
	set("a", "", true, true, true, node)
	set("a", "raud", true, false, false, node)
	set("a", "raup", false, true, false, node)
	set("a", "rau", true, true, false, node)
	set("a", "racwdl", false, false, true, node)
	set("a", "r z", false, false, false, node)
	set(strings.Repeat("a", 64), "r", true, true, true, node)
	set(strings.Repeat("a", 65), "r", false, false, false, "InvalidXmlDocument")
}
