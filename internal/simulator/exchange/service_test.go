package simulator

import (
	"testing"
)

func TestXMLErrorBody(t *testing.T) {
	s := newQueueService(NewClock(testStart()), newDice(1), &Chaos{})
	call := rawCall{method: "GET", target: "/orders?comp=metadata", header: map[string]string{
		"x-ms-version": "2026-04-06", "x-ms-client-request-id": "mine"}}
	a := serveFunc(s.Serve).want(t, call, 404, "QueueNotFound")
	id := a.header.Get("x-ms-request-id")
	want := "\ufeff" + `<?xml version="1.0" encoding="utf-8"?><Error><Code>QueueNotFound</Code><Message>` +
		"The specified queue does not exist.\nRequestId:" + id + "\nTime:2026-11-20T12:00:00.0000000Z</Message></Error>"
	if string(a.body) != want {
		t.Errorf("body\n%s, want\n%s", a.body, want)
	}
	for name, value := range map[string]string{"Content-Type": "application/xml", "x-ms-version": "2026-04-06",
		"x-ms-client-request-id": "mine", "Date": "Fri, 20 Nov 2026 12:00:00 GMT"} {
		if a.header.Get(name) != value {
			t.Errorf("%s is %q, want %q", name, a.header.Get(name), value)
		}
	}
}
