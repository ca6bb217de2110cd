package logtail_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestGoldenRow pins what is stored: logs that exist must be read for ever.
func TestGoldenRow(t *testing.T) {
	ctx, c := t.Context(), &clock{day}
	l := openLog(t, storagetest.Open(t), c.now)
	v := &claim{Entry: logtail.Entry{LoggedAt: day, LogID: "7ZQ3GTLDVYMV5W2KHJ5T6XKX4E"}, Employee: "000223", Amount: 12}
	assert.Check(t, l.Append(ctx, v))
	answer, err := l.Table().Client().GetEntity(ctx, "000223", "log_2519936321679999999_7ZQ3GTLDVYMV5W2KHJ5T6XKX4E", nil)
	assert.Check(t, err)
	var row map[string]any
	assert.Check(t, json.Unmarshal(answer.Value, &row))
	var got []string
	for _, name := range slices.Sorted(maps.Keys(row)) {
		if !strings.HasPrefix(name, "odata.") && !strings.HasPrefix(name, "Timestamp") && !strings.HasPrefix(name, "_tp") {
			got = append(got, fmt.Sprintf("%s=%v", name, row[name]))
		}
	}
	want := []string{"Amount=12", "Category=", "Employee=000223", "LogID=7ZQ3GTLDVYMV5W2KHJ5T6XKX4E", "LoggedAt=2014-08-22T00:50:32Z", "LoggedAt@odata.type=Edm.DateTime",
		"PartitionKey=000223", "RowKey=log_2519936321679999999_7ZQ3GTLDVYMV5W2KHJ5T6XKX4E"}
	if slices.Contains(got, "Amount@odata.type=Edm.Int64") {
		got = slices.DeleteFunc(got, func(s string) bool { return s == "Amount@odata.type=Edm.Int64" })
	}
	assert.Slices(t, got, want, "the row")
}

// TestGoldenCursor: a cursor that an earlier build saved goes on.
func TestGoldenCursor(t *testing.T) {
	c := &clock{day}
	s := storagetest.Simulator(t, nil)
	l := openTable(t, s, "Claims", schemaAt(c.now))
	assert.Check(t, l.Table().Create(t.Context()))
	write(t, l, 1, day)
	write(t, l, 2, day.Add(1500))
	f := follower(t, l, "")
	amounts(t, f.Poll(t.Context()))
	const want = "AaGf-fPB1XUtCNGLuhIctgCAjI2eAvSvrEGnlmrfQuePjI2eArFmfD303yVaxdY"
	assert.Equal(t, f.Cursor(), want, "the cursor")
	if got := amounts(t, follower(t, l, want).Poll(t.Context())); len(got) != 0 {
		t.Errorf("the saved cursor yields %v again", got)
	}
}
