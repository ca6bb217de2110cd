package patterns_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestRepairWaits: Repair marks damaged copies at once, so that readers are right from then on, and settles them once no change that was under
// way before can commit any more. Another Repair writes nothing.
func TestRepairWaits(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		ctx, counted, kinds := t.Context(), *s, &storagetest.RequestCounter{}
		counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, kinds)
		store := assert.Must[*patterns.Store](t)(patterns.Open("contoso", &patterns.StoreOptions{Account: storeAccount(t, &counted)}))
		index := interpartition.NewUnique("email", emailPart, nil)
		repo := assert.Must[*patterns.Repository[person]](t)(patterns.NewRepository(store.Table("Persons"), personSchema(), index))
		assert.Check(t, store.Create(ctx))
		mails := []string{"missing", "different", "copied", "untouched"} // they say what is done to the copy
		for i, mail := range mails {
			p := ann()
			p.ID, p.Email = i, mail
			assert.Check(t, repo.Insert(ctx, p))
		}
		synctest.Wait() // until the copies are settled
		at := func(mail string) tables.Key { return tables.Key{Partition: "email", Row: mail} }
		deleteRaw(t, repo.Table(), at("missing"))
		different, nobody := readRaw(t, repo.Table(), at("different")), readRaw(t, repo.Table(), at("copied"))
		different["Name"], nobody["RowKey"] = "Somebody", "nobody"
		different.write(t, repo.Table())
		nobody.write(t, repo.Table())

		ended := make(chan error)
		began := time.Now()
		go func() {
			found, err := harness.Findings(ctx, repo.Repair, &patterns.JobOptions{Lag: 1})
			for _, f := range found {
				err = errors.Join(err, f.NotRepaired)
			}
			if len(found) != 3 {
				err = errors.Join(err, errors.New("not three findings"))
			}
			ended <- err
		}()
		right := func(when string, marked int) {
			t.Helper()
			for _, mail := range mails {
				if p, err := index.Get(ctx, compoundkey.String(mail)); err != nil || p.Name != "Ann" {
					t.Errorf("%s: %s: %+v, %v", when, mail, p, err)
				}
			}
			_, err := index.Get(ctx, compoundkey.String("nobody"))
			harness.WantKind(t, err, tables.ErrNotFound)
			n := 0
			for _, row := range assert.Must[stored](t)(readStored(ctx, repo.Table(), "email")) {
				if row["_tpMark"] != "" {
					n++
				}
			}
			if n != marked {
				t.Errorf("%s: %d copies are marked, want %d", when, n, marked)
			}
		}
		synctest.Wait() // until Repair waits
		right("while Repair waits", 3)
		assert.Check(t, <-ended)
		if took := time.Since(began); took < 35*time.Second || took > 40*time.Second {
			t.Errorf("Repair took %v", took)
		}
		right("after Repair", 0)
		kinds.Reset()
		report := assert.Must[patterns.RepairReport](t)(repo.Repair(ctx, &patterns.JobOptions{Lag: 1}))
		if report.Findings+report.Marked+report.Candidates != 0 || kinds.Count() != kinds.Kinds()[storagetest.QueryEntities] {
			t.Errorf("another Repair: %v, %v", report, kinds.Kinds())
		}
		assert.Check(t, harness.Settle(ctx, store))
	})
}
