package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// faultRate is the share of storage calls that go wrong with -chaos.
const faultRate = 0.04

// chaos is what goes wrong in a run, on purpose.
type chaos struct {
	Share  float64        `json:"share"`  // of storage calls that meet a fault; 0 without -chaos
	Calls  int            `json:"calls"`  // among which the faults are
	Faults map[string]int `json:"faults"` // by what they are
	Kills  int            `json:"kills"`  // of worker processes
}

// badNetwork is a transport on which calls go wrong in all ways in which calls do, as the seed says: a share of all calls, but
// for those that make and drop containers, which go by the Azure SDK alone, and that cannot tell a lost answer from a rival.
func badNetwork(inner policy.Transporter, share float64, seed uint64) *storagetest.Faults {
	if inner == nil {
		inner = http.DefaultClient
	}
	var faults []storagetest.Injector
	for i, fault := range []storagetest.Injector{storagetest.LostAnswer, storagetest.Applied500, storagetest.Throttled, storagetest.NotSent, storagetest.CutAnswerAt(0.5)} {
		faults = append(faults, storagetest.Randomly(share/5, 5*seed+uint64(i), fault))
	}
	return storagetest.NewFaults(inner, storagetest.If(func(call storagetest.Call) bool {
		return call.Kind != storagetest.CreateContainer && call.Kind != storagetest.DeleteContainer
	}, storagetest.First(faults...)))
}

// patient has a client repeat what has failed, soon and often: a share of 4 % of faults leaves one call in a hundred million to
// fail for good.
func patient(options azcore.ClientOptions) azcore.ClientOptions {
	options.Retry = policy.RetryOptions{MaxRetries: 5, RetryDelay: 2 * time.Millisecond, MaxRetryDelay: 20 * time.Millisecond}
	return options
}

// faultName says in words what a fault is.
func faultName(fault storagetest.Fault) string {
	switch fault {
	case storagetest.LostAnswer:
		return "applied, answer lost"
	case storagetest.Applied500:
		return "applied, answered 500"
	case storagetest.Throttled:
		return "answered 503, not applied"
	case storagetest.NotSent:
		return "not sent"
	}
	return "answer cut off"
}

// add counts what calls have met.
func (x *chaos) add(network *storagetest.Faults) {
	if x.Faults == nil {
		x.Faults = map[string]int{}
	}
	x.Calls += len(network.Calls())
	for _, met := range network.Met() {
		x.Faults[faultName(met.Fault)]++
	}
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
	if total == 0 {
		return "none"
	}
	return fmt.Sprintf("%s in %s: %s", counted(total, "fault"), counted(x.Calls, "call"), strings.Join(kinds, ", "))
}
