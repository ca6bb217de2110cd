package eventual

import (
	"testing"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestGoldenBodies pins the bodies of the library's own messages: those on a queue are read by later versions.
func TestGoldenBodies(t *testing.T) {
	one := intents.Intent{ID: "CHANGE", Members: []intents.Member{{Repository: "Employees", Key: tables.Key{Partition: "Sales", Row: "empid_000223"},
		Outside: map[string][]string{"email": {"email_Sales\tjonesj@contoso.com"}}}}}
	for want, body := range map[string]any{
		`{"id":"CHANGE","repository":"Employees","partition":"Sales","row":"empid_000223","outside":{"email":["email_Sales\tjonesj@contoso.com"]}}`: bodyOf(one),
		`{"id":"CHANGE","repository":"","partition":"","row":"","outside":{},"members":[{"repository":"Employees","partition":"Sales","row":"empid_000223","outside":{"email":["email_Sales\tjonesj@contoso.com"]}},{"repository":"Lines","partition":"Sales","row":"line_1","outside":{"list":["Sales\tlist_a"]}}]}`: bodyOf(
			intents.Intent{ID: one.ID, Members: append(one.Members, intents.Member{Repository: "Lines", Key: tables.Key{Partition: "Sales", Row: "line_1"}, Outside: map[string][]string{"list": {"Sales\tlist_a"}}})}),
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
		assert.Equal(t, own, name, "the type")
	}
}
