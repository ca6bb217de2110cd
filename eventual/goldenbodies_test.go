package eventual

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"
)

// TestGoldenBodies pins the bodies of the library's own messages: those on a queue are read by later versions.
func TestGoldenBodies(t *testing.T) {
	for want, body := range map[string]any{
		`{"id":"CHANGE","repository":"Employees","partition":"Sales","row":"empid_000223","outside":{"email":["email_Sales\tjonesj@contoso.com"]}}`: intentBody{
			"CHANGE", "Employees", "Sales", "empid_000223", map[string][]string{"email": {"email_Sales\tjonesj@contoso.com"}}},
		`{"queue":"orders","shard":1,"id":"A7","type":"ship","reason":"no","dequeues":5,"sent":"2026-11-20T13:00:00Z","poisonedAt":"2026-11-20T13:01:00Z","original":"e30="}`: poisonEntry{
			Queue: "orders", Shard: 1, ID: "A7", Type: "ship", Reason: "no", Dequeues: 5, Original: "e30=",
			Sent: time.Date(2026, 11, 20, 13, 0, 0, 0, time.UTC), PoisonedAt: time.Date(2026, 11, 20, 13, 1, 0, 0, time.UTC)},
	} {
		got, err := json.Marshal(body)
		if err != nil || string(got) != want {
			t.Errorf("%T is written as\n%s\nwant\n%s\n%v", body, got, want, err)
		}
	}
	for name, own := range map[string]string{"tablepatterns.intent": intentType, "tablepatterns.poison": poisonType} {
		if own != name {
			t.Errorf("a type is %q, was %q", own, name)
		}
	}
}
