package highvolumedelete_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestTableRefusedBehindAnUnansweredInsert: the first attempt of an insert is on its way, the second meets no table, and the
// table is refused to this writer. A concurrent writer makes it, and the first attempt arrives: so the refusal was none of the entity.
// Without such an attempt it is.
func TestTableRefusedBehindAnUnansweredInsert(t *testing.T) {
	for _, no := range []struct {
		storagetest.Refusal
		kind error
	}{
		{storagetest.Refusal{Status: http.StatusForbidden, Code: "AuthorizationPermissionMismatch"}, tables.ErrDenied},
		{storagetest.Refusal{Status: http.StatusBadRequest, Code: "InvalidInput"}, tables.ErrInvalid},
	} {
		for _, unanswered := range []bool{true, false} {
			s := storagetest.Simulator(t, nil)
			schema := schemaOf(nameOf(t, s), func() time.Time { return noon })
			first := &harness.HeldRequest{Network: s.ClientOptions.Transport}
			holds := storagetest.NewToggle(storagetest.On(storagetest.InsertEntity, storagetest.Once(storagetest.Always(first))))
			holds.Set(unanswered)
			faulty, _ := s.WithRetries(1).Faulty(storagetest.First(holds, storagetest.On(storagetest.CreateTable, storagetest.Always(no))))
			concurrent, l := mustStart(t, s, schema), &login{User: "june", At: noon}
			err := mustStart(t, faulty, schema).Insert(t.Context(), l)
			want := no.kind
			if unanswered {
				want = tables.ErrUnknownOutcome // the first attempt may still arrive, whatever the creation says
			}
			if !errors.Is(err, want) || errors.Is(err, no.kind) == unanswered {
				t.Errorf("%s, with an unanswered attempt (%v): %v", no.Code, unanswered, err)
			}
			if !unanswered {
				continue
			}
			assert.Check(t, concurrent.Prepare(t.Context(), noon, noon))
			if status := first.Arrive(); status/100 != 2 {
				t.Errorf("the first attempt is answered with %d: the test shows nothing", status)
			}
		}
	}
}

// TestBeingDeletedBehindAnUnansweredAttempt: names do not come back, so that what is on its way to a table that is being
// deleted does not matter: it is ErrLate, and not of unknown outcome.
func TestBeingDeletedBehindAnUnansweredAttempt(t *testing.T) {
	for _, kind := range []storagetest.Kind{storagetest.InsertEntity, storagetest.CreateTable} {
		s := storagetest.Simulator(t, nil)
		faulty, _ := s.WithRetries(1).Faulty(storagetest.On(kind, storagetest.First(
			storagetest.Once(storagetest.Before500), storagetest.Once(storagetest.Always(storagetest.Refusal{Status: http.StatusConflict, Code: "TableBeingDeleted"})))))
		err := mustStart(t, faulty, schemaOf("Logins", func() time.Time { return noon })).Insert(t.Context(), &login{User: "june", At: noon})
		if !errors.Is(err, highvolumedelete.ErrLate) || tables.KindOf(err) != tables.ErrInvalid {
			t.Errorf("%s: %v, want ErrLate", kind, err)
		}
	}
}
