package simulator_test

import (
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
)

// orderless is an account with a table, a queue and a container, and clients for them.
type orderless struct {
	t     *testing.T
	sim   *simulator.Simulator
	rows  *aztables.Client
	queue *azqueue.QueueClient
	blobs *azblob.Client
}

func newOrderless(t *testing.T) *orderless {
	t.Helper()
	sim, err := simulator.New(simulator.Options{})
	fine(t, err)
	sim.Clock().Stand()
	options := azcore.ClientOptions{Transport: sim}
	connection := "DefaultEndpointsProtocol=http;AccountName=" + sim.Account() + ";AccountKey=" + sim.Key() + ";TableEndpoint=" +
		sim.TableEndpoint() + ";QueueEndpoint=" + sim.QueueEndpoint() + ";BlobEndpoint=" + sim.BlobEndpoint()
	tables, err := aztables.NewServiceClientFromConnectionString(connection, &aztables.ClientOptions{ClientOptions: options})
	fine(t, err)
	queue, err := azqueue.NewQueueClientFromConnectionString(connection, "queue", &azqueue.ClientOptions{ClientOptions: options})
	fine(t, err)
	blobs, err := azblob.NewClientFromConnectionString(connection, &azblob.ClientOptions{ClientOptions: options})
	fine(t, err)
	o := &orderless{t, sim, tables.NewClient("Rows"), queue, blobs}
	_, err = o.rows.CreateTable(t.Context(), nil)
	fine(t, err)
	_, err = o.queue.Create(t.Context(), nil)
	fine(t, err)
	_, err = o.blobs.CreateContainer(t.Context(), "blobs", nil)
	fine(t, err)
	return o
}

func fine(t *testing.T, err error) {
	t.Helper()
	assert.Check(t, err)
}

func (o *orderless) put(row string) string {
	o.t.Helper()
	r, err := o.rows.UpsertEntity(o.t.Context(), []byte(`{"PartitionKey":"p","RowKey":"`+row+`","N":1}`), nil)
	fine(o.t, err)
	return string(r.ETag)
}

func (o *orderless) remove(row string) {
	o.t.Helper()
	_, err := o.rows.DeleteEntity(o.t.Context(), "p", row, nil)
	fine(o.t, err)
}

func (o *orderless) send(text string) string {
	o.t.Helper()
	r, err := o.queue.EnqueueMessage(o.t.Context(), text, nil)
	fine(o.t, err)
	return *r.Messages[0].MessageID
}

// get returns the text of the next message, "" for none.
func (o *orderless) get() (text, id, receipt string) {
	o.t.Helper()
	r, err := o.queue.DequeueMessage(o.t.Context(), &azqueue.DequeueMessageOptions{VisibilityTimeout: to.Ptr[int32](30)})
	fine(o.t, err)
	if len(r.Messages) == 0 {
		return "", "", ""
	}
	m := r.Messages[0]
	return *m.MessageText, *m.MessageID, *m.PopReceipt
}

func (o *orderless) upload(name, content string) string {
	o.t.Helper()
	r, err := o.blobs.UploadBuffer(o.t.Context(), "blobs", name, []byte(content), nil)
	fine(o.t, err)
	return string(*r.ETag)
}

// Requests that have nothing to do with each other come to one state, in any order; those that have, do not.
func TestOrderlessStates(t *testing.T) {
	run := func(steps ...func(o *orderless)) [32]byte {
		o := newOrderless(t)
		for _, step := range steps {
			step(o)
		}
		return o.sim.Snapshot().Key()
	}
	a := func(o *orderless) { o.put("a") }
	b := func(o *orderless) { o.put("b"); o.put("b"); o.remove("b") }
	m := func(o *orderless) { o.send("m") }
	n := func(o *orderless) { o.send("n") }
	x := func(o *orderless) { o.upload("x", "1") }
	y := func(o *orderless) { o.upload("y", "2"); o.upload("y", "3") }
	one := run(a, b, m, n, x, y)
	if one != run(y, n, b, x, m, a) || one != run(m, a, y, x, b, n) {
		t.Error("the order of unrelated requests makes a difference")
	}
	for name, other := range map[string][32]byte{
		"a written twice": run(a, a, b, m, n, x, y),
		"m put twice":     run(a, b, m, m, n, x, y),
		"m got":           run(a, b, m, func(o *orderless) { o.get() }, n, x, y),
		"no b":            run(a, m, n, x, y),
		"no y":            run(a, b, m, n, x),
		"later":           run(a, b, m, n, x, y, func(o *orderless) { o.sim.Clock().Advance(time.Second) }),
	} {
		if other == one {
			t.Errorf("%s: the same state", name)
		}
	}
}

// No resource ever has one ETag or id twice, also where it is deleted and made again while the clock stands still.
func TestOrderlessStampsAreUnique(t *testing.T) {
	o := newOrderless(t)
	seen := map[string]bool{}
	add := func(kind, stamp string) {
		t.Helper()
		if seen[kind+stamp] {
			t.Errorf("%s has %s twice", kind, stamp)
		}
		seen[kind+stamp] = true
	}
	for range 3 {
		add("row", o.put("a"))
		add("row", o.put("a"))
		o.remove("a")
		add("message", o.send("m"))
		add("message", o.send("m"))
		add("blob", o.upload("x", "1"))
		_, err := o.blobs.DeleteBlob(t.Context(), "blobs", "x", nil)
		fine(t, err)
		add("blob", o.upload("x", "1"))
		o.sim.Clock().Advance(100 * time.Nanosecond)
	}
}

// A snapshot is not changed by what comes after it, and is the account again when it is restored.
func TestSnapshotRestore(t *testing.T) {
	o := newOrderless(t)
	etag := o.put("a")
	o.send("m")
	_, id, receipt := o.get()
	o.upload("x", "1")
	before := o.sim.Snapshot()
	key := before.Key()
	var after [2][32]byte
	for i := range after {
		o.put("a")
		o.put("b")
		o.remove("a")
		_, err := o.queue.DeleteMessage(t.Context(), id, receipt, nil)
		fine(t, err)
		o.send("n")
		o.upload("x", "2")
		o.upload("y", "3")
		o.sim.Clock().Advance(time.Hour)
		after[i] = o.sim.Snapshot().Key()
		o.sim.Restore(before)
		if o.sim.Snapshot().Key() != key || before.Key() != key {
			t.Fatal("the account is not what it was")
		}
	}
	if after[0] != after[1] || after[0] == key {
		t.Error("the same requests in the same state come to different ones")
	}
	if rows := o.sim.Rows("Rows"); len(rows) != 1 || rows[0].ETag != etag {
		t.Errorf("rows %+v", rows)
	}
	got, err := o.blobs.DownloadStream(t.Context(), "blobs", "x", nil)
	fine(t, err)
	if *got.ContentLength != 1 || *got.ETag == "" {
		t.Errorf("%+v", got)
	}
}

func TestSnapshotWaitingAndGetFirst(t *testing.T) {
	o := newOrderless(t)
	for _, text := range []string{"m", "n", "o"} {
		o.send(text)
	}
	start := o.sim.Snapshot()
	seen := map[string]bool{}
	for place := range 3 {
		o.sim.Restore(start)
		o.sim.GetFirst(place)
		text, _, _ := o.get()
		seen[text] = true
	}
	assert.Len(t, seen, 3, "firsts")
	s := o.sim.Snapshot()
	visible, all, next, last := s.Waiting(func(string) bool { return true })
	if visible != 2 || all != 3 || last.Sub(s.Now()) != 30*time.Second || next != last {
		t.Errorf("%d visible of %d, from %v until %v", visible, all, next, last)
	}
	if _, all, _, _ := s.Waiting(func(queue string) bool { return queue != "queue" }); all != 0 {
		t.Errorf("%d messages", all)
	}
}
