package conformance

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// rule is one of the services' documented rules, with requests on both sides of its limit.
type rule struct {
	name, limit string
	tries       []try
}

// try is one request, or a few, and the outcome on Azure.
type try struct {
	what, want string
	do         func(w *world) string
	// may is set for what Azure may do at any time, and the simulator does when it is told to; the others never do it.
	may *storagetest.Chaos
	// timed is set for what needs the simulator's clock: elsewhere it would take too long.
	timed bool
	// stored is set for what depends on the entity as it is stored, and queue for what is no table's: Strict does not hold it.
	stored, queue bool
	// narrow is set for what Azurite refuses though Azure takes it, or answers otherwise: no transport in front of it can change that.
	narrow bool
}

// results are the outcomes of all tries by target.
type results map[*try]map[string]string

// TestRules sends each rule its largest right value and its smallest wrong one. The simulator, Strict and an account must
// take and refuse just what Azure does; what Azurite does goes into docs/explanation/azurite.md.
func TestRules(t *testing.T) {
	all := targets(t)
	rules := allRules()
	got := results{}
	var mu sync.Mutex
	t.Run("tries", func(t *testing.T) {
		for _, tg := range all {
			for _, r := range rules {
				for i := range r.tries {
					one := &r.tries[i]
					if one.may != nil && tg.name == onAccount || one.timed && tg.name != onSimulator {
						continue
					}
					t.Run(tg.name+"/"+r.name+"/"+one.what, func(t *testing.T) {
						t.Parallel()
						outcome := runTry(t, tg, one)
						mu.Lock()
						defer mu.Unlock()
						if got[one] == nil {
							got[one] = map[string]string{}
						}
						got[one][tg.name] = outcome
					})
				}
			}
		}
	})
	checkRules(t, rules, got)
	tries := 0
	for _, r := range rules {
		tries += len(r.tries)
	}
	t.Logf("%d rules, %d tries", len(rules), tries)
}

func runTry(t *testing.T, tg target, one *try) string {
	w := &world{TB: t, target: tg}
	w.Service = tg.open(t)
	if one.may != nil && tg.name == onSimulator {
		w.SetChaos(*one.may)
	}
	return one.do(w)
}

// checkRules holds what must be alike. A try that did not run, as -run leaves some out, is not looked at.
func checkRules(t *testing.T, rules []rule, got results) {
	t.Helper()
	complete := true
	for _, r := range rules {
		for i := range r.tries {
			one := &r.tries[i]
			for _, tg := range []string{onSimulator, onStrict, onAccount} {
				outcome, ran := got[one][tg]
				held := tg != onStrict || !one.stored && !one.queue && !one.narrow && one.may == nil
				if ran && held && outcome != one.want {
					t.Errorf("%s, %s, %s: %q, want %q", tg, r.name, one.what, outcome, one.want)
				}
				declared := one.stored || one.narrow
				if strict, ran := got[one][onStrict]; ran && declared && strict == one.want {
					t.Errorf("%s, %s: Azurite with Strict does as Azure does, and is declared not to", r.name, one.what)
				}
			}
			for _, tg := range []string{onSimulator, onAzurite, onStrict} {
				if _, ran := got[one][tg]; !ran && !(one.timed && tg != onSimulator) {
					complete = false
				}
			}
		}
	}
	if complete {
		checkDocument(t, rules, got)
	} else if *update {
		t.Error("-update needs all tries; leave out -run, or have it name TestRules alone")
	}
}

// outcome is an answer's in short.
func (w *world) outcome(r reply) string {
	return fieldsOf(r.Response, r.body, w.replacer())["outcome"]
}

// quick is a try of one request to the table service, made of a table's name.
func quick(what, want, method string, path, body func(table string) string, headers ...string) try {
	return try{what: what, want: want, do: func(w *world) string {
		table := w.newTable()
		return w.outcome(w.quiet(tables, method, path(table), body(table), headers...))
	}}
}

// insert is a try of an insert with properties, without the comma in front.
func insert(what, want, properties string) try {
	return insertKeys(what, want, "p", "r", properties)
}

func insertKeys(what, want, pk, rk, properties string) try {
	if properties != "" {
		properties = "," + properties
	}
	body := `{"PartitionKey":` + quoted(pk) + `,"RowKey":` + quoted(rk) + properties + `}`
	return quick(what, want, "POST", func(table string) string { return "/" + table }, func(string) string { return body }, "Prefer", "return-no-content")
}

// query is a try of a query with options.
func query(what, want, options string) try {
	return quick(what, want, "GET", func(table string) string { return "/" + table + "()?" + options }, func(string) string { return "" })
}

// transaction is a try of a transaction.
func transaction(what, want string, ops func(w *world, table string) []string) try {
	return try{what: what, want: want, do: func(w *world) string {
		return w.outcome(w.quiet(tables, "POST", "/$batch", changeSet(ops(w, w.newTable())...), batchType...))
	}}
}

// merge is a try of an entity that is within its limits, and of a merge that takes it beyond.
func merge(what, want, stored, added string) try {
	return try{what: what, want: want, stored: true, do: func(w *world) string {
		table := w.newTable()
		w.must(tables, "POST", "/"+table, `{"PartitionKey":"p","RowKey":"r",`+stored+`}`)
		return w.outcome(w.quiet(tables, "PATCH", entityPath(table, "p", "r"), `{`+added+`}`))
	}}
}

// properties makes n properties of one Int32 each.
func properties(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`"P%d":%d`, i, i)
	}
	return strings.Join(all, ",")
}
