package backup_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	goldenLines = `{"PartitionKey":"a","RowKey":"000003","Alpha":3,"ID@odata.type":"Edm.Guid","ID":"3565fe5d-c2f4-597a-862d-6790af66f031","Large@odata.type":"Edm.Int64","Large":"9223372036854775804","Odd":true,"Ratio@odata.type":"Edm.Double","Ratio":1.0,"Raw@odata.type":"Edm.Binary","Raw":"AAP/","When@odata.type":"Edm.DateTime","When":"2014-08-22T00:50:03.0000003Z","Whole@odata.type":"Edm.Double","Whole":3.0,"Zulu":"ä\"\u000a\u2028ä\"\u000a\u2028ä\"\u000a\u2028","_tpWrite":"ID"}
{"PartitionKey":"it's","RowKey":"","_tpWrite":"ID"}
`
	goldenManifest = `tablepatterns backup 1 SUM
{"v":1,"run":"ID","q":"PRINT","tables":["TABLE"],"began":"TIME","ended":"TIME","entries":1}
{"i":0,"k":{"f":{}},"n":2,"b":SIZE,"h":"SUM","s":SIZE,"c":"SUM","t":{"first":"TIME","last":"TIME"}}
`
)

// TestGolden pins the bytes of a backup.
func TestGolden(t *testing.T) {
	table := newTable(t, harness.Account(t))
	assert.Check(t, table.Entities().Insert(t.Context(), rowOf(3)), table.Entities().Insert(t.Context(), harness.Row("it's", "")))
	folder := t.TempDir()
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(folder))
	defer v.Close()
	assert.Check(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{table}, nil)))
	masks := []struct{ pattern, by string }{
		{`"q":"[0-9a-f]{16}"`, `"q":"PRINT"`}, {`[0-9a-f]{64}`, "SUM"}, {`"[A-Z2-7]{26}"`, `"ID"`}, {`"\d{4}-[0-9T:.-]+Z"`, `"TIME"`}, {`"(b|s)":\d+`, `"$1":SIZE`}, {table.Name(), "TABLE"},
	}
	all := files(t, folder)
	got := string(all["all.manifest"])
	for _, m := range masks {
		got = regexp.MustCompile(m.pattern).ReplaceAllString(got, m.by)
	}
	assert.Equal(t, got, goldenManifest, "manifest")
	var entry struct {
		C, H string
		S, B int
	}
	assert.Check(t, json.Unmarshal(bytes.Split(all["all.manifest"], []byte("\n"))[2], &entry))
	stored := assert.Must[[]byte](t)(os.ReadFile(filepath.Join(folder, "chunks", entry.C[:2], entry.C)))
	d := assert.Must[*zstd.Decoder](t)(zstd.NewReader(nil))
	defer d.Close()
	lines := assert.Must[[]byte](t)(d.DecodeAll(stored, nil))
	if sumOf(stored) != entry.C || sumOf(lines) != entry.H || len(stored) != entry.S || len(lines) != entry.B || len(all) != 2 {
		t.Errorf("%+v of %d files", entry, len(all))
	}
	assert.Equal(t, regexp.MustCompile(`"[A-Z2-7]{26}"`).ReplaceAllString(string(lines), `"ID"`), goldenLines, "lines")
}
