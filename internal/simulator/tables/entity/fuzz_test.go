package entity_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/entity"
)

// FuzzEntity: a body that is taken is written as one that is taken and means the same.
func FuzzEntity(f *testing.F) {
	for _, seed := range []string{probe.EveryType, `{}`, `{"A":1.5e3,"B":"\ud83d\ude00"}`, `{"A@odata.type":"Edm.Int64","A":"-1"}`, `{"A":null,"Timestamp":5}`, `{"A":"\u2028"}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sent, fault := entity.Read(body)
		if fault != nil {
			assert.Equal(t, fault.Status, 400, "fault %+v", fault)
			return
		}
		e := &entity.Stored{Partition: sent.Partition, Row: sent.Row, Properties: sent.Properties}
		e.Stamp(probe.Start())
		for _, m := range []entity.Metadata{entity.Minimal, entity.Full} {
			w := entity.NewWriter(m, "http://contoso.table.sim.test", "contoso", "Employees", nil, false)
			text := w.AppendOne(nil, e)
			again, fault := entity.Read(text)
			if fault != nil {
				t.Fatalf("%q was written as %q, which is refused: %v", body, text, fault)
			}
			if again.Partition != sent.Partition || again.Row != sent.Row || len(again.Properties) != len(sent.Properties) {
				t.Fatalf("%q was written as %q", body, text)
			}
			for i, p := range again.Properties {
				assert.Equal(assert.Fatal(t), p, sent.Properties[i], "%q was written as %q", body, text)
			}
		}
	})
}
