package exchange_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/queues"
)

func TestXMLErrorBody(t *testing.T) {
	s := queues.New(environment.NewClock(probe.Start()), environment.NewDice(1), &environment.Chaos{})
	call := probe.Call{Method: "GET", Target: "/orders?comp=metadata", Header: map[string]string{
		"x-ms-version": "2026-04-06", "x-ms-client-request-id": "mine"}}
	a := probe.Service(s.Serve).Want(t, call, 404, "QueueNotFound")
	id := a.Header.Get("x-ms-request-id")
	want := "\ufeff" + `<?xml version="1.0" encoding="utf-8"?><Error><Code>QueueNotFound</Code><Message>` +
		"The specified queue does not exist.\nRequestId:" + id + "\nTime:2026-11-20T12:00:00.0000000Z</Message></Error>"
	assert.Equal(t, string(a.Body), want, "body\n%s, want", a.Body)
	for name, value := range map[string]string{"Content-Type": "application/xml", "x-ms-version": "2026-04-06",
		"x-ms-client-request-id": "mine", "Date": "Fri, 20 Nov 2026 12:00:00 GMT"} {
		assert.Equal(t, a.Header.Get(name), value, name)
	}
}
