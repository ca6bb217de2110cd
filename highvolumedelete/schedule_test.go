package highvolumedelete_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	mathrand "math/rand/v2"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// lateness is how long after its sender gave up on it a request may arrive: what the service itself allows a request.
const lateness = 30 * time.Second

// TestSchedule: writers of the present and of earlier hours, who create tables side by side, and two retention jobs. Their calls
// fail, or arrive late; they die, and are held up. No table below the mark is made once Drop has returned, no entity above
// the mark is lost or there twice, and what was refused is not there.
func TestSchedule(t *testing.T) {
	seeds := 300
	if harness.Shortened() {
		seeds = 30
	}
	seen := runSchedules(t, seeds, 0)
	seen.MustHave(t, "inserted", "late refused", "unknown", "deaths", "late requests", "drops", "tables dropped", "concurrent creators")
	if n := seen.Count("tables that came back"); n > 0 {
		t.Errorf("%d tables were made below a mark whose Drop had returned", n)
	}
}

// TestScheduleWithoutGrace: without the wait between the mark and the tables, the same schedules do bring tables back.
func TestScheduleWithoutGrace(t *testing.T) {
	seen := runSchedules(t, 60, -1)
	if n := seen.Count("tables that came back"); n == 0 {
		t.Error("no table came back: the schedules would not see it")
	}
}

func runSchedules(t *testing.T, seeds int, grace time.Duration) *harness.Log {
	seen := &harness.Log{}
	var r *scheduleWorld
	explore.Schedules(t, explore.ScheduleCase{Seeds: seeds, Idle: 20 * time.Second,
		Pauses: []time.Duration{time.Millisecond, time.Second, 9 * time.Second, 15 * time.Second, 45 * time.Second, 10 * time.Minute},
		Service: func(t testing.TB) *storagetest.Service {
			s := storagetest.Simulator(t, nil)
			return s.WithTransport(func(inner policy.Transporter) policy.Transporter {
				r = &scheduleWorld{seen: seen, network: inner, grace: grace}
				return r
			})
		},
		Stage: func(_ testing.TB, s *storagetest.Service) explore.Stage { return r.stage(s) },
	})
	t.Log(seen)
	return seen
}

// scheduleWorld is one stage, and the network in front of its service.
type scheduleWorld struct {
	seen    *harness.Log
	network policy.Transporter
	grace   time.Duration

	lock     sync.Mutex
	closed   string            // the label of the mark of a Drop that has returned
	accepted map[string]bool   // users of entities whose Insert returned nil
	refused  map[string]bool   // and of those who know that nothing was written
	periods  map[string]string // of users: the label
}

// Do is policy.Transporter: it watches tables come and go.
func (r *scheduleWorld) Do(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, "/Tables") {
		body, _ = io.ReadAll(req.Body)
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := r.network.Do(req)
	if err != nil || body == nil {
		return resp, err
	}
	var table struct{ TableName string }
	if err := json.Unmarshal(body, &table); err != nil {
		return nil, err
	}
	label := strings.TrimPrefix(table.TableName, "Logins")
	r.lock.Lock()
	closed := label < r.closed && label[0] == 'H'
	r.lock.Unlock()
	switch {
	case resp.StatusCode < 300 && closed:
		r.seen.Add("tables that came back", 1)
	case resp.StatusCode == http.StatusConflict && closed:
		r.seen.Add("being deleted", 1)
	case resp.StatusCode == http.StatusConflict:
		r.seen.Add("concurrent creators", 1)
	}
	return resp, err
}

func (r *scheduleWorld) schema() highvolumedelete.Schema[login] {
	schema := schemaOf("Logins", time.Now)
	schema.Unit = highvolumedelete.Hour
	return schema
}

func (r *scheduleWorld) stage(*storagetest.Service) explore.Stage {
	var b [8]byte
	rand.Read(b[:])
	rng := mathrand.New(mathrand.NewPCG(binary.LittleEndian.Uint64(b[:]), 0))
	r.accepted, r.refused, r.periods = map[string]bool{}, map[string]bool{}, map[string]string{}
	var stage explore.Stage
	for i := range 3 {
		stage.Actors = append(stage.Actors, r.writer(i, rng.Uint64()))
	}
	stage.Actors = append(stage.Actors, r.dropper(rng.Uint64()), r.dropper(rng.Uint64()))
	stage.Check = r.check
	return stage
}

// process is the client of a process that calls befall.
func (r *scheduleWorld) process(s *storagetest.Service, rng *mathrand.Rand) (*storagetest.Service, *storagetest.Faults) {
	return s.Faulty(storagetest.InjectorFunc(func(call storagetest.Call) storagetest.Fault {
		switch n := rng.Float64(); {
		case n < 0.03:
			r.seen.Add("deaths", 1)
			return []storagetest.Fault{storagetest.DiesBefore, storagetest.DiesAfter}[rng.IntN(2)]
		case n < 0.08 || n < 0.4 && call.Kind == storagetest.CreateTable:
			r.seen.Add("late requests", 1)
			return harness.LateRequest{Network: r, After: time.Duration(rng.Int64N(int64(lateness)))}
		case n < 0.2:
			faults := storagetest.FaultsOf(call.Kind)
			return faults[rng.IntN(len(faults))]
		}
		return nil
	}))
}

// writer inserts logins of the present hour and of hours before it. A process that dies has a successor, who goes on with the next.
func (r *scheduleWorld) writer(id int, seed uint64) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, 0))
		faulty, process := r.process(s, rng)
		logins, err := start(faulty, r.schema())
		if err != nil {
			return err
		}
		for i := range 6 {
			l := &login{User: fmt.Sprintf("%d-%d", id, i), At: time.Now().Truncate(100).Add(-time.Duration(rng.IntN(5)) * time.Hour)}
			name, err := logins.TableName(l.At)
			if err != nil {
				return err
			}
			alive, cancel := process.Context(ctx)
			err = logins.Insert(alive, l)
			cancel()
			r.note(l, strings.TrimPrefix(name, "Logins"), err, process.Dead())
			if process.Dead() {
				faulty, process = r.process(s, rng)
				if logins, err = start(faulty, r.schema()); err != nil {
					return err
				}
			}
			time.Sleep([]time.Duration{0, 0, time.Second, 20 * time.Second, 20 * time.Minute}[rng.IntN(5)])
		}
		return nil
	}
}

func (r *scheduleWorld) note(l *login, label string, err error, dead bool) {
	r.lock.Lock()
	defer r.lock.Unlock()
	r.periods[l.User] = label
	switch {
	case dead:
	case err == nil:
		r.accepted[l.User] = true
		r.seen.Add("inserted", 1)
	case errors.Is(err, highvolumedelete.ErrLate):
		r.refused[l.User] = true
		r.seen.Add("late refused", 1)
	case errors.Is(err, tables.ErrUnknownOutcome):
		r.seen.Add("unknown", 1)
	case surelyNot(err):
		r.refused[l.User] = true
		r.seen.Add("failed", 1)
	}
}

// dropper drops what is older than two hours, again and again; one that died is resumed by the next.
func (r *scheduleWorld) dropper(seed uint64) explore.Actor {
	return func(ctx context.Context, s *storagetest.Service) error {
		rng := mathrand.New(mathrand.NewPCG(seed, 0))
		for range 5 {
			time.Sleep([]time.Duration{0, time.Second, 20 * time.Second, 30 * time.Minute}[rng.IntN(4)])
			faulty, process := r.process(s, rng)
			alive, cancel := process.Context(ctx)
			if _, err := r.drop(alive, faulty); err != nil && alive.Err() == nil && !errors.Is(err, tables.ErrUnavailable) &&
				!errors.Is(err, tables.ErrUnknownOutcome) && !errors.Is(err, tables.ErrGarbled) && !transport(err) {
				cancel()
				return err
			}
			cancel()
		}
		return nil
	}
}

func transport(err error) bool {
	var network net.Error
	return errors.As(err, &network)
}

func (r *scheduleWorld) drop(ctx context.Context, s *storagetest.Service) (highvolumedelete.DropReport, error) {
	logins, err := start(s, r.schema())
	if err != nil {
		return highvolumedelete.DropReport{}, err
	}
	report, err := logins.Drop(ctx, time.Now().Add(-2*time.Hour), &highvolumedelete.DropOptions{UnsafeGrace: r.grace})
	r.seen.Add("tables dropped", int64(len(report.Tables)))
	if err != nil {
		return report, err
	}
	r.seen.Add("drops", 1)
	r.lock.Lock()
	defer r.lock.Unlock()
	r.closed = max(r.closed, "H"+report.Mark.Format("2006010215"))
	return report, nil
}

// check looks at the end: what is late has arrived, and a last Drop has resumed all others.
func (r *scheduleWorld) check(ctx context.Context, s *storagetest.Service, errs []error) error {
	time.Sleep(2 * lateness)
	if err := errors.Join(errs...); err != nil {
		return err
	}
	report, err := r.drop(ctx, s)
	if err != nil {
		return err
	}
	s.Wait(time.Minute)
	logins, err := start(s, r.schema())
	if err != nil {
		return err
	}
	mark := "H" + report.Mark.Format("2006010215")
	there := map[string]int{}
	for l, err := range logins.Between(ctx, time.Time{}, time.Time{}, &highvolumedelete.ReadOptions[login]{Query: scan}) {
		if err != nil {
			return err
		}
		if there[l.User]++; there[l.User] > 1 || r.refused[l.User] || r.periods[l.User] < mark {
			return fmt.Errorf("the login %s of %s is there %d times, refused: %v, the mark is %s", l.User, r.periods[l.User], there[l.User], r.refused[l.User], mark)
		}
	}
	for user := range r.accepted {
		if there[user] == 0 && r.periods[user] >= mark {
			return fmt.Errorf("the login %s of %s is lost, the mark is %s", user, r.periods[user], mark)
		}
	}
	names, err := logins.List(ctx)
	if err != nil {
		return err
	}
	for _, table := range names {
		if strings.TrimPrefix(table, "Logins") < mark {
			return fmt.Errorf("%s is there, and the mark is %s", table, mark)
		}
	}
	return nil
}
