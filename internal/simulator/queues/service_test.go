package queues

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/authorization"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

// testQueues is a queue service with an SDK client on it.
type testQueues struct {
	probe.Service
	clock  *environment.Clock
	chaos  *environment.Chaos
	client *azqueue.ServiceClient
}

func newTestQueues(t *testing.T, seed uint64) *testQueues {
	t.Helper()
	q := &testQueues{clock: environment.NewClock(probe.Start()), chaos: &environment.Chaos{}}
	q.Service = New(q.clock, environment.NewDice(seed), q.chaos).Serve
	client, err := azqueue.NewServiceClientWithNoCredential("http://contoso.queue.sim.test/",
		&azqueue.ClientOptions{ClientOptions: q.Options()})
	assert.Check(t, err)
	q.client = client
	return q
}

// queue creates a queue.
func (q *testQueues) queue(t *testing.T, name string) *azqueue.QueueClient {
	t.Helper()
	assert.Check(t, assert.Err(q.client.CreateQueue(probe.Context(t), name, nil)))
	return q.client.NewQueueClient(name)
}

func TestQueueNames(t *testing.T) {
	for name, code := range map[string]string{
		"abc":                   "",
		"ab":                    "OutOfRangeInput",
		strings.Repeat("a", 63): "",
		strings.Repeat("a", 64): "OutOfRangeInput",
		"0-9":                   "",
		"a-b-c":                 "",
		"a--b":                  "InvalidResourceName",
		"-ab":                   "InvalidResourceName",
		"ab-":                   "InvalidResourceName",
		"Abc":                   "InvalidResourceName",
		"a_b":                   "InvalidResourceName",
		"a.b":                   "InvalidResourceName",
		"äbc":                   "InvalidResourceName",
	} {
		status := map[bool]int{true: 201, false: 400}[code == ""]
		newTestQueues(t, 1).Want(t, probe.Call{Method: "PUT", Target: "/" + name}, status, code)
	}
}

func TestQueueCreate(t *testing.T) {
	q := newTestQueues(t, 1)
	put := func(header map[string]string, status int, code string) {
		t.Helper()
		q.Want(t, probe.Call{Method: "PUT", Target: "/orders", Header: header}, status, code)
	}
	put(map[string]string{"x-ms-meta-a": "1"}, 201, "")
	put(map[string]string{"x-ms-meta-a": "1"}, 204, "")
	put(map[string]string{"X-Ms-Meta-A": "1"}, 204, "")
	put(map[string]string{"x-ms-meta-a": "2"}, 409, "QueueAlreadyExists")
	put(map[string]string{"x-ms-meta-a": "1", "x-ms-meta-b": "1"}, 409, "QueueAlreadyExists")
	put(nil, 409, "QueueAlreadyExists")
}

func TestQueueDelete(t *testing.T) {
	q := newTestQueues(t, 1)
	ctx := probe.Context(t)
	orders := q.queue(t, "orders")
	assert.Check(t, assert.Err(orders.EnqueueMessage(ctx, "old", nil)))
	assert.Check(t, assert.Err(q.client.DeleteQueue(ctx, "orders", nil)))
	probe.WantError(t, assert.Err(orders.Delete(ctx, nil)), 404, "QueueNotFound")
	probe.WantError(t, assert.Err(orders.DequeueMessage(ctx, nil)), 404, "QueueNotFound")

	q.clock.Advance(deleteDelay - 100)
	probe.WantError(t, assert.Err(orders.Create(ctx, nil)), 409, "QueueBeingDeleted")
	q.clock.Advance(100)
	assert.Check(t, assert.Err(orders.Create(ctx, nil)))
	got := assert.Must[azqueue.PeekMessagesResponse](t)(orders.PeekMessage(ctx, nil))
	assert.Equal(t, len(got.Messages), 0, "a new queue has the old one's messages")
}

func TestQueueMetadata(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	_, err := orders.SetMetadata(ctx, &azqueue.SetMetadataOptions{Metadata: map[string]*string{"Region": to.Ptr("eu"), "b": to.Ptr("2")}})
	assert.Check(t, err)
	got := assert.Must[azqueue.GetQueuePropertiesResponse](t)(orders.GetProperties(ctx, nil))
	if len(got.Metadata) != 2 || got.Metadata["Region"] == nil || *got.Metadata["Region"] != "eu" || *got.ApproximateMessagesCount != 0 {
		t.Errorf("properties %v, count %d", got.Metadata, *got.ApproximateMessagesCount)
	}
	q.Want(t, probe.Call{Method: "HEAD", Target: "/orders?comp=metadata"}, 200, "")
	q.Want(t, probe.Call{Method: "HEAD", Target: "/others?comp=metadata"}, 404, "QueueNotFound")
	for name, rule := range probe.MetadataRules() {
		t.Run(name, func(t *testing.T) {
			status := map[bool]int{true: 204, false: 400}[rule.Code == ""]
			q.Want(t, probe.Call{Method: "PUT", Target: "/orders?comp=metadata", Header: rule.Header}, status, rule.Code)
		})
	}
}

func TestQueuePolicies(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	start := probe.Start()
	_, err := orders.SetAccessPolicy(ctx, &azqueue.SetAccessPolicyOptions{QueueACL: []*azqueue.SignedIdentifier{
		{ID: to.Ptr("readers"), AccessPolicy: &azqueue.AccessPolicy{Start: &start, Expiry: to.Ptr(start.Add(time.Hour)), Permission: to.Ptr("r")}},
	}})
	assert.Check(t, err)
	got := assert.Must[azqueue.GetAccessPolicyResponse](t)(orders.GetAccessPolicy(ctx, nil))
	if len(got.SignedIdentifiers) != 1 || *got.SignedIdentifiers[0].ID != "readers" ||
		*got.SignedIdentifiers[0].AccessPolicy.Permission != "r" || !got.SignedIdentifiers[0].AccessPolicy.Start.Equal(start) {
		t.Errorf("policies %v", got.SignedIdentifiers)
	}
	one := func(id string) string { return "<SignedIdentifier><Id>" + id + "</Id></SignedIdentifier>" }
	five := one("a") + one("b") + one("c") + one("d") + one("e")
	for body, code := range map[string]string{
		"":                           "",
		five:                         "",
		five + one("f"):              "InvalidXmlDocument",
		one("a") + one("a"):          "InvalidXmlNodeValue",
		one(""):                      "InvalidXmlNodeValue",
		one(strings.Repeat("a", 64)): "",
		one(strings.Repeat("a", 65)): "InvalidXmlDocument",
		"<SignedIdentifier>":         "InvalidXmlDocument",
	} {
		status := map[bool]int{true: 204, false: 400}[code == ""]
		q.Want(t, probe.Call{Method: "PUT", Target: "/orders?comp=acl", Body: "<SignedIdentifiers>" + body + "</SignedIdentifiers>"}, status, code)
	}
	q.Want(t, probe.Call{Method: "PUT", Target: "/orders?comp=acl", Body: "<SignedIdentifiers>" + one("x") + "</SignedIdentifiers>"}, 204, "")
	q.Want(t, probe.Call{Method: "PUT", Target: "/orders?comp=acl"}, 204, "")
	if got, err := orders.GetAccessPolicy(ctx, nil); err != nil || len(got.SignedIdentifiers) != 0 {
		t.Errorf("policies not cleared: %v, %v", got.SignedIdentifiers, err)
	}
}

func TestQueuePolicyLookUp(t *testing.T) {
	s := New(environment.NewClock(probe.Start()), environment.NewDice(1), &environment.Chaos{})
	f := probe.Service(s.Serve)
	f.Want(t, probe.Call{Method: "PUT", Target: "/orders"}, 201, "")
	f.Want(t, probe.Call{Method: "PUT", Target: "/orders?comp=acl", Body: `<SignedIdentifiers><SignedIdentifier><Id>w</Id><AccessPolicy>` +
		`<Expiry>2027-01-01</Expiry><Permission>au</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`}, 204, "")
	got, ok := s.Policy("orders", "w")
	if want := (authorization.Policy{ID: "w", Expiry: "2027-01-01", Permission: "au"}); !ok || got != want {
		t.Errorf("policy %v %v, want %v", got, ok, want)
	}
	for _, missing := range [][2]string{{"orders", "x"}, {"others", "w"}} {
		if _, ok := s.Policy(missing[0], missing[1]); ok {
			t.Errorf("policy %v found", missing)
		}
	}
}

// listQueues reads all pages and returns their names, page by page.
func (q *testQueues) listQueues(t *testing.T, o *azqueue.ListQueuesOptions) [][]string {
	t.Helper()
	var pages [][]string
	for pager := q.client.NewListQueuesPager(o); pager.More(); {
		page := assert.Must[azqueue.ListQueuesResponse](t)(pager.NextPage(probe.Context(t)))
		names := []string{}
		for _, item := range page.Queues {
			name := *item.Name
			if item.Metadata["a"] != nil {
				name += "=" + *item.Metadata["a"]
			}
			names = append(names, name)
		}
		pages = append(pages, names)
	}
	return pages
}

func TestQueueList(t *testing.T) {
	q := newTestQueues(t, 1)
	for _, name := range []string{"north-2", "south-1", "north-1", "north-3"} {
		_, err := q.client.CreateQueue(probe.Context(t), name, &azqueue.CreateOptions{Metadata: map[string]*string{"a": to.Ptr("<&>")}})
		assert.Check(t, err)
	}
	for name, test := range map[string]struct {
		options azqueue.ListQueuesOptions
		want    [][]string
	}{
		"all":      {azqueue.ListQueuesOptions{}, [][]string{{"north-1", "north-2", "north-3", "south-1"}}},
		"prefix":   {azqueue.ListQueuesOptions{Prefix: to.Ptr("south")}, [][]string{{"south-1"}}},
		"none":     {azqueue.ListQueuesOptions{Prefix: to.Ptr("west")}, [][]string{{}}},
		"pages":    {azqueue.ListQueuesOptions{MaxResults: to.Ptr(int32(2)), Prefix: to.Ptr("north")}, [][]string{{"north-1", "north-2"}, {"north-3"}}},
		"metadata": {azqueue.ListQueuesOptions{Include: azqueue.ListQueuesInclude{Metadata: true}, Prefix: to.Ptr("s")}, [][]string{{"south-1=<&>"}}},
	} {
		t.Run(name, func(t *testing.T) {
			assert.NoDiff(t, cmp.Diff(test.want, q.listQueues(t, &test.options)))
		})
	}
	for target, code := range map[string]string{
		"/?comp=list&maxresults=0":       "OutOfRangeQueryParameterValue",
		"/?comp=list&maxresults=1":       "",
		"/?comp=list&maxresults=5001":    "",
		"/?comp=list&maxresults=x":       "InvalidQueryParameterValue",
		"/?comp=list&marker=x":           "InvalidQueryParameterValue",
		"/?comp=list&marker=2!":          "InvalidQueryParameterValue",
		"/?comp=stats":                   "InvalidQueryParameterValue",
		"/north-1?comp=nothing":          "InvalidQueryParameterValue",
		"/north-1/others":                "InvalidUri",
		"/north-1/messages?peekonly=yes": "",
	} {
		status := map[bool]int{true: 200, false: 400}[code == ""]
		q.Want(t, probe.Call{Method: "GET", Target: target}, status, code)
	}
	for _, call := range []probe.Call{{Method: "POST", Target: "/north-1"}, {Method: "PUT", Target: "/north-1/messages"},
		{Method: "POST", Target: "/north-1/messages/x?popreceipt=x"}, {Method: "DELETE", Target: "/north-1?comp=acl"}} {
		q.Want(t, call, 405, "UnsupportedHttpVerb")
	}
}

func TestQueueListPageCuts(t *testing.T) {
	q := newTestQueues(t, 7)
	for _, name := range []string{"aaa", "bbb", "ccc", "ddd", "eee"} {
		q.queue(t, name)
	}
	*q.chaos = environment.Chaos{EmptyPages: 0.3, ShortPages: 0.5}
	empty, short := 0, 0
	for range 50 {
		var all []string
		pages := q.listQueues(t, nil)
		for i, page := range pages {
			all = append(all, page...)
			if len(page) == 0 {
				empty++
			} else if i < len(pages)-1 {
				short++
			}
		}
		assert.NoDiff(assert.Fatal(t), cmp.Diff([]string{"aaa", "bbb", "ccc", "ddd", "eee"}, all))
	}
	if empty == 0 || short == 0 {
		t.Errorf("%d empty and %d short pages", empty, short)
	}
}
