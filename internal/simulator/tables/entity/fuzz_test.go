package simulator

import "testing"

// FuzzEntity: a body that is taken is written as one that is taken and means the same.
func FuzzEntity(f *testing.F) {
	for _, seed := range []string{everyType, `{}`, `{"A":1.5e3,"B":"\ud83d\ude00"}`, `{"A@odata.type":"Edm.Int64","A":"-1"}`, `{"A":null,"Timestamp":5}`, `{"A":"\u2028"}`, `[`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		sent, fault := readEntity(body)
		if fault != nil {
			if fault.Status != 400 {
				t.Errorf("fault %+v", fault)
			}
			return
		}
		e := &entity{pk: sent.pk, rk: sent.rk, properties: sent.properties}
		e.stamp(testStart())
		for _, m := range []metadata{minimalMetadata, fullMetadata} {
			w := newEntityWriter(m, "http://contoso.table.sim.test", "contoso", "Employees", nil, false)
			text := w.appendOne(nil, e)
			again, fault := readEntity(text)
			if fault != nil {
				t.Fatalf("%q was written as %q, which is refused: %v", body, text, fault)
			}
			if again.pk != sent.pk || again.rk != sent.rk || len(again.properties) != len(sent.properties) {
				t.Fatalf("%q was written as %q", body, text)
			}
			for i, p := range again.properties {
				if p != sent.properties[i] {
					t.Fatalf("%q was written as %q: %#v", body, text, p)
				}
			}
		}
	})
}
