package conformance

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// script is one case: requests whose answers every target must give alike.
type script struct {
	name string
	run  func(w *world)
}

// step is one answer of a case.
type step struct {
	name, want string
	fields     fields
}

// world is one target while one case runs on it.
type world struct {
	testing.TB
	target
	steps []step
	// made are the names that the case made up, and what stands for them in fields.
	made []string
}

// reply is an answer as scripts use it: what it says depends on the target, and goes into later requests.
type reply struct {
	*http.Response
	body string
}

// do sends a request and records the answer. want is the outcome: status, error code, and in brackets those of a
// transaction's parts. It is what the simulator must answer, and any other target unless a difference is declared.
func (w *world) do(s service, name, want, method, path, body string, headers ...string) reply {
	w.Helper()
	r := w.quiet(s, method, path, body, headers...)
	w.steps = append(w.steps, step{name, want, fieldsOf(r.Response, r.body, w.replacer())})
	return r
}

// quiet sends a request whose answer is of no interest.
func (w *world) quiet(s service, method, path, body string, headers ...string) reply {
	w.Helper()
	resp, text, err := w.send(w.Context(), request{service: s, method: method, path: path, body: body, headers: headers, signed: true})
	assert.NoError(assert.Fatal(w), err, "%s %s", method, path)
	if resp.Request == nil {
		resp.Request = &http.Request{Method: method}
	}
	return reply{resp, text}
}

// must is quiet for what a case needs first.
func (w *world) must(s service, method, path, body string, headers ...string) reply {
	w.Helper()
	r := w.quiet(s, method, path, body, headers...)
	if r.StatusCode >= 300 {
		w.Fatalf("%s %s: %d %s", method, path, r.StatusCode, r.body)
	}
	return r
}

func (w *world) replacer() *strings.Replacer {
	pairs := slices.Clone(w.made)
	for _, s := range []service{tables, queues, blobs} {
		pairs = append(pairs, w.endpoint(s), "{endpoint}")
	}
	return strings.NewReplacer(append(pairs, w.AccountName+".", "{account}.")...)
}

// newTable, newQueue and newContainer name something and make it; what stands for the name is the same on all targets.
func (w *world) newTable() string {
	name := w.tableName()
	w.must(tables, "POST", "/Tables", `{"TableName":"`+name+`"}`)
	return name
}

func (w *world) tableName() string { return w.named("{table}", w.TableName(w)) }

func (w *world) newQueue() string {
	name := w.named("{queue}", w.QueueName(w))
	w.must(queues, "PUT", "/"+name, "")
	return name
}

func (w *world) newContainer() string {
	name := w.named("{container}", w.ContainerName(w))
	w.must(blobs, "PUT", "/"+name+"?restype=container", "")
	return name
}

func (w *world) named(stand, name string) string {
	if n := len(w.made) / 2; n > 0 {
		stand = strings.TrimSuffix(stand, "}") + fmt.Sprint(n+1) + "}"
	}
	w.made = append(w.made, name, stand)
	return name
}

// note records something that was worked out from answers, as a step of its own.
func (w *world) note(name, want string, value any) {
	w.steps = append(w.steps, step{name, want, fields{"outcome": fmt.Sprint(value)}})
}

// TestConformance runs every case on every target and compares what they say.
func TestConformance(t *testing.T) {
	all := targets(t)
	seen := &observations{}
	cases := slices.Concat(tableCases(), entityCases(), valueCases(), queryCases(), batchCases(), queueCases(), blobCases(), accessCases())
	begin, steps, ran := time.Now(), 0, 0
	var mu sync.Mutex
	t.Run("cases", func(t *testing.T) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) {
				t.Parallel()
				n, complete := compareTargets(t, c, all, seen)
				mu.Lock()
				defer mu.Unlock()
				steps += n
				if complete {
					ran++
				}
			})
		}
	})
	// With -run, only some cases were run; what the others need cannot be known then.
	seen.checkStale(t, ran == len(cases))
	declared := 0
	for _, d := range differences {
		declared += len(d.where)
	}
	t.Logf("%d cases of %d requests on %d targets, %d declared differences in %d places, %v", ran, steps, len(all), len(differences), declared, time.Since(begin).Round(time.Millisecond))
}

// compareTargets runs a case on the simulator and on the others. It returns the number of its steps, and whether all
// targets were run, of which -run may leave some out.
func compareTargets(t *testing.T, c script, all []target, seen *observations) (steps int, complete bool) {
	run := func(t *testing.T, tg target) []step {
		w := &world{TB: t, target: tg}
		w.Service = tg.open(t)
		c.run(w)
		return w.steps
	}
	reference := run(t, all[0])
	for _, s := range reference {
		if got := s.fields["outcome"]; got != s.want {
			t.Errorf("%s, simulator: %q, want %q\n%s", s.name, got, s.want, s.fields)
		}
	}
	others := 0
	for _, tg := range all[1:] {
		t.Run(tg.name, func(t *testing.T) {
			others++
			compareSteps(t, c.name, tg.name, reference, run(t, tg), seen)
		})
	}
	return len(reference), others == len(all)-1
}

func compareSteps(t *testing.T, name, tg string, want, got []step, seen *observations) {
	t.Helper()
	if len(want) != len(got) {
		t.Fatalf("%d steps, the simulator makes %d", len(got), len(want))
	}
	for i := range want {
		all := maps.Clone(want[i].fields)
		maps.Copy(all, got[i].fields)
		if want[i].fields["outcome"] != got[i].fields["outcome"] {
			all = fields{"outcome": ""} // nothing else can be alike then
		}
		for _, field := range slices.Sorted(maps.Keys(all)) {
			at := observation{tg, name + "/" + want[i].name, field, want[i].fields[field], got[i].fields[field]}
			if !seen.allow(at) {
				t.Error(at)
			}
		}
	}
}

// String lists the fields in order.
func (f fields) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&b, "\t%s = %.300s\n", name, f[name])
	}
	return b.String()
}
