package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

const (
	// faultRate is the share of calls that go wrong on a bad network.
	faultRate = 0.05
	// insideRate is the share of transactions that the service fails inside an answer with status 202, as Azure reports
	// throttling and timeouts.
	insideRate = 0.02
	// chaosVisibility is how long a message waits whose holder was lost: a minute by default.
	chaosVisibility = 3 * time.Second
)

// chaos is what went wrong in a run, on purpose.
type chaos struct {
	Calls        int            `json:"calls"`        // on a bad network
	Transactions int            `json:"transactions"` // of these
	Inside       int            `json:"inside"`       // transactions that failed inside their answer
	Faults       map[string]int `json:"faults"`       // of the calls, by what they met
	Kills        int            `json:"kills"`        // of worker processes
}

// modes are the ways in which calls go wrong, each with its name in the report.
var modes = []struct {
	injector storagetest.Injector
	name     string
}{
	{storagetest.LostAnswer, "applied, answer lost"},
	{storagetest.Applied500, "applied, answered 500"},
	{storagetest.Throttled, "answered 503, not applied"},
	{storagetest.NotSent, "not sent"},
	{storagetest.CutAnswerAt(0.5), "answer cut off"},
}

// network is what -chaos puts between the run and the service. While it is bad, calls go wrong in all modes, as the seed says.
type network struct {
	*storagetest.Faults
	bad   *storagetest.Toggle
	calls *storagetest.RequestCounter // while it was bad
}

func newNetwork(inner policy.Transporter, seed uint64) *network {
	n := &network{calls: &storagetest.RequestCounter{}}
	injectors := append([]storagetest.Injector{n.calls}, failuresInside(seed)...)
	for i, mode := range modes {
		injectors = append(injectors, storagetest.Randomly(faultRate/float64(len(modes)), uint64(len(modes))*seed+uint64(i), mode.injector))
	}
	n.bad = storagetest.NewToggle(storagetest.First(injectors...))
	n.Faults = storagetest.NewFaults(inner, n.bad)
	return n
}

// failuresInside fail transactions inside their answer, in all the ways in which the service does.
func failuresInside(seed uint64) []storagetest.Injector {
	var ways []storagetest.Fault
	for _, fault := range storagetest.FaultsOf(storagetest.Batch) {
		if _, is := fault.(storagetest.Inside); is {
			ways = append(ways, fault)
		}
	}
	var injectors []storagetest.Injector
	for i, fault := range ways {
		chosen := storagetest.Randomly(insideRate/float64(len(ways)), ^(uint64(len(ways))*seed + uint64(i)), storagetest.Always(fault))
		injectors = append(injectors, storagetest.On(storagetest.Batch, chosen))
	}
	return injectors
}

// chaos is what went wrong in the run so far, nil without -chaos.
func (c *company) chaos() *chaos {
	if c.network == nil {
		return nil
	}
	calls := c.network.calls
	x := &chaos{Calls: calls.Count(), Transactions: calls.CountOf(storagetest.Batch), Faults: map[string]int{}, Kills: c.kills}
	for _, met := range c.network.Met() {
		if inside, is := met.Fault.(storagetest.Inside); is {
			x.Inside++
			x.Faults[fmt.Sprintf("answered 202 with %d inside", inside.Status)]++
			continue
		}
		for _, m := range modes {
			if any(m.injector) == any(met.Fault) {
				x.Faults[m.name]++
			}
		}
	}
	return x
}

// patient has a client repeat failed calls soon and often, so that those that the SDK may repeat rarely fail for good.
func patient(options azcore.ClientOptions) azcore.ClientOptions {
	options.Retry = policy.RetryOptions{MaxRetries: 5, RetryDelay: 2 * time.Millisecond, MaxRetryDelay: 20 * time.Millisecond}
	return options
}

// String is the faults, the most frequent first.
func (x *chaos) String() string {
	total := 0
	var kinds []string
	for _, name := range slices.SortedFunc(maps.Keys(x.Faults), func(a, b string) int {
		return cmp.Or(x.Faults[b]-x.Faults[a], strings.Compare(a, b))
	}) {
		total += x.Faults[name]
		kinds = append(kinds, fmt.Sprintf("%d %s", x.Faults[name], name))
	}
	return fmt.Sprintf("%s in %s: %s; %d of %s failed inside the answer", counted(total, "fault"), counted(x.Calls, "call"), strings.Join(kinds, ", "),
		x.Inside, counted(x.Transactions, "transaction"))
}
