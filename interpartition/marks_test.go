package interpartition_test

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// member is an entity with a unique email.
type member struct {
	tables.Meta
	PartitionKey, RowKey string
	Email, Name          string
}

// club is one process that stores members.
type club struct {
	store   *patterns.Store
	members *patterns.Repository[member]
	byEmail *interpartition.Unique[member, string]
	calls   *atomic.Int64
}

// clubOf says how a club is opened. The index has a table of its own, so that faults can tell its requests apart.
type clubOf struct {
	faults      storagetest.Injector
	project     []string
	otherBuilds bool
	without     bool // without the index
	readOnly    bool
}

func openClub(t *testing.T, s *storagetest.Service, of clubOf) *club {
	t.Helper()
	c := &club{calls: new(atomic.Int64)}
	if of.faults == nil {
		of.faults = storagetest.Mode(0)
	}
	client := s.WithTransport(func(inner policy.Transporter) policy.Transporter {
		faults := storagetest.NewFaults(inner, of.faults)
		return harness.Transport(func(req *http.Request) (*http.Response, error) {
			c.calls.Add(1)
			return faults.Do(req)
		})
	})
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(client.ConnectionString, &tables.AccountOptions{ClientOptions: client.ClientOptions}))
	c.store = assert.Must[*patterns.Store](t)(patterns.Open("club", &patterns.StoreOptions{Account: account, ReadOnly: of.readOnly}))
	c.byEmail = interpartition.NewUnique("email", func(m *member) string { return m.Email },
		&interpartition.Options[member]{Table: c.store.Table("Emails"), Project: of.project})
	var attached []patterns.Pattern[member]
	if !of.without {
		attached = append(attached, c.byEmail)
	}
	c.members = assert.Must[*patterns.Repository[member]](t)(patterns.NewRepository(c.store.Table("Members"), patterns.Schema[member]{OtherBuilds: of.otherBuilds}, attached...))
	if err := c.store.Create(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

const annsEmail = "ann@contoso.com"

func ann() *member {
	return &member{PartitionKey: "a", RowKey: "ann", Email: annsEmail, Name: "Ann"}
}

func ben() *member {
	return &member{PartitionKey: "b", RowKey: "ben", Email: annsEmail, Name: "Ben"}
}

// must makes a change, and waits until what it has left is done.
func (c *club) must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Second)
}

// find reads a member by email, nil if there is none, and returns how many requests that took until nothing was left to do.
func (c *club) find(t *testing.T, email string) (*member, int64) {
	t.Helper()
	before := c.calls.Load()
	found, err := c.byEmail.Get(t.Context(), email)
	if err != nil && !errors.Is(err, tables.ErrNotFound) {
		t.Error(err)
	}
	time.Sleep(time.Second)
	return found, c.calls.Load() - before
}

func (c *club) wantFound(t *testing.T, email, name string, requests int64) {
	t.Helper()
	found, n := c.find(t, email)
	if found == nil && name != "" || found != nil && found.Name != name || n != requests {
		t.Errorf("%s is %+v with %d requests; want %q with %d", email, found, n, name, requests)
	}
}

// writes limits a fault to the writes of rows of a table.
func writes(table string, next storagetest.Injector) storagetest.Injector {
	return storagetest.If(func(c storagetest.Call) bool {
		return strings.HasPrefix(c.Resource, table) && c.Writes() && c.Kind != storagetest.CreateTable
	}, next)
}

// atCommit calls do before the first transaction of members is sent.
func atCommit(do func()) storagetest.Injector {
	return writes("Members", storagetest.Once(storagetest.Always(storagetest.Before("commit", do))))
}

// TestOutcomeBeforeTheCommit: whatever is lost before the commit, a change whose transaction was not sent never has an unknown outcome.
func TestOutcomeBeforeTheCommit(t *testing.T) {
	for _, mode := range []storagetest.Mode{storagetest.LostAnswer, storagetest.Applied500, storagetest.NotSent, storagetest.Before500, storagetest.Throttled} {
		for n := range 3 {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				c := openClub(t, s, clubOf{})
				c.must(t, c.members.Insert(t.Context(), ann()))
				c = openClub(t, s, clubOf{faults: writes("Emails", storagetest.Times(n+1, mode))})
				if err := c.members.Insert(t.Context(), ben()); !errors.Is(err, tables.ErrDuplicate) {
					t.Errorf("%v, %d times: a duplicate is %v", mode, n+1, err)
				}
				c = openClub(t, s, clubOf{faults: writes("Emails", storagetest.Times(n+1, mode))})
				c.must(t, c.members.Insert(t.Context(), &member{PartitionKey: "c", RowKey: "carl", Email: "carl@contoso.com", Name: "Carl"}))
				time.Sleep(time.Minute)
				c.wantFound(t, "carl@contoso.com", "Carl", 1)
			})
		}
	}
}

// TestOutageAfterTheCommit: if the index's table fails after the commit, a change neither fails nor waits. Readers are right as soon as they can read, and
// the process tidies up after the term.
func TestOutageAfterTheCommit(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := openClub(t, s, clubOf{})
		c.must(t, c.members.Insert(t.Context(), ann()))
		down := storagetest.NewToggle(storagetest.Before500)
		d := openClub(t, s, clubOf{faults: storagetest.First(atCommit(func() { down.Set(true) }), writes("Emails", down)), readOnly: true})
		found, _ := d.find(t, annsEmail)
		found.Name = "Anna"
		began := time.Now()
		d.must(t, d.members.Replace(t.Context(), found))
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the caller waited %v for the index", took)
		}
		d.wantFound(t, annsEmail, "Anna", 2)
		time.Sleep(20 * time.Second)
		d.wantFound(t, annsEmail, "Anna", 2)
		down.Set(false)
		time.Sleep(time.Minute)
		d.wantFound(t, annsEmail, "Anna", 1)
	})
}

// TestUnknownInsert: an insert whose outcome is unknown refuses the same insert until it has arrived or never will, and no longer.
func TestUnknownInsert(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := openClub(t, s, clubOf{faults: writes("Members", storagetest.Once(storagetest.Before500))})
		if err := c.members.Insert(t.Context(), ann()); !errors.Is(err, tables.ErrUnknownOutcome) {
			t.Errorf("an insert that may have been applied is told %v", err)
		}
		if err := c.members.Insert(t.Context(), ann()); !errors.Is(err, tables.ErrConflict) {
			t.Errorf("the same insert at once is told %v", err)
		}
		time.Sleep(7 * time.Second)
		c.must(t, c.members.Insert(t.Context(), ann()))
		c.wantFound(t, annsEmail, "Ann", 1)
	})
}

// TestLostMarks: a change that fails since the answers to its marks were lost gives back its keys.
func TestLostMarks(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := openClub(t, s, clubOf{faults: storagetest.First(writes("Emails", storagetest.Times(1, storagetest.LostAnswer)),
			storagetest.If(func(c storagetest.Call) bool { return strings.HasPrefix(c.Resource, "Emails") && !c.Writes() }, storagetest.Times(8, storagetest.Before500)))})
		if err := c.members.Insert(t.Context(), ann()); !errors.Is(err, tables.ErrUnavailable) {
			t.Errorf("an insert whose marks are lost is told %v", err)
		}
		time.Sleep(time.Second)
		c.must(t, c.members.Insert(t.Context(), ann()))
		c.wantFound(t, annsEmail, "Ann", 1)
	})
}

// slowCall delays calls of one table before the term is checked, as the upload of a large value does.
type slowCall struct {
	path string
	by   time.Duration
}

func (p slowCall) Do(req *policy.Request) (*http.Response, error) {
	if raw := req.Raw(); raw.Method == http.MethodPost && strings.HasSuffix(raw.URL.Path, p.path) {
		time.Sleep(p.by)
	}
	return req.Next()
}

// TestTermEnds: a change that comes to its commit after its term writes nothing, says so, and gives back its key.
func TestTermEnds(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		late := *s
		late.ClientOptions.PerCallPolicies = append(late.ClientOptions.PerCallPolicies, slowCall{"/Members", 26 * time.Second})
		c, d := openClub(t, &late, clubOf{}), openClub(t, s, clubOf{})
		err := c.members.Insert(t.Context(), ann())
		if !errors.Is(err, tables.ErrUnavailable) || !strings.Contains(err.Error(), "term") {
			t.Errorf("the late insert was told %v", err)
		}
		time.Sleep(time.Second)
		d.wantFound(t, annsEmail, "", 1)
		if err := d.members.Insert(t.Context(), ben()); err != nil {
			t.Errorf("the key that was given back is refused: %v", err)
		}
	})
}

// TestDiesBeforeTheCommit: the key that a dead process was taking is free again after term and grace; until then it is refused, and readers find nobody.
func TestDiesBeforeTheCommit(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		dead, c := openClub(t, s, clubOf{faults: writes("Members", storagetest.DiesBefore)}), openClub(t, s, clubOf{})
		if err := dead.members.Insert(t.Context(), ann()); err == nil {
			t.Fatal("the process did not die")
		}
		c.wantFound(t, annsEmail, "", 3)
		if err := c.members.Insert(t.Context(), ben()); !errors.Is(err, tables.ErrDuplicate) || !strings.Contains(err.Error(), "35s") {
			t.Errorf("another entity that takes the key is told %v", err)
		}
		if err := c.members.Insert(t.Context(), ann()); !errors.Is(err, tables.ErrConflict) || !strings.Contains(err.Error(), "35s") {
			t.Errorf("the same insert is told %v", err)
		}
		time.Sleep(40 * time.Second)
		c.must(t, c.members.Insert(t.Context(), ben()))
		c.wantFound(t, annsEmail, "Ben", 1)
	})
}

// TestReadersTidyUp: a reader that finds a mark of a dead process settles it after term and grace, unless the Store is ReadOnly.
func TestReadersTidyUp(t *testing.T) {
	for _, mode := range []storagetest.Mode{storagetest.DiesBefore, storagetest.DiesAfter} {
		storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
			c := openClub(t, s, clubOf{})
			c.must(t, c.members.Insert(t.Context(), ann()))
			dead, reads := openClub(t, s, clubOf{faults: writes("Members", mode)}), openClub(t, s, clubOf{readOnly: true})
			m, _ := dead.find(t, annsEmail)
			name := map[storagetest.Mode]string{storagetest.DiesBefore: "Ann", storagetest.DiesAfter: "Anna"}[mode]
			if m.Name = "Anna"; dead.members.Replace(t.Context(), m) == nil {
				t.Fatal("the process did not die")
			}
			c.wantFound(t, annsEmail, name, 2)
			time.Sleep(40 * time.Second)
			reads.wantFound(t, annsEmail, name, 2)
			reads.wantFound(t, annsEmail, name, 2)
			c.wantFound(t, annsEmail, name, 3) // with the write that settles the copy
			c.wantFound(t, annsEmail, name, 1)
		})
	}
}

// TestOtherBuilds: a build that does not know an index is refused to write entities of the index. With Schema.OtherBuilds both builds write,
// and the index is right all the time, since its rows stay marked; only what the other build inserts is not in it.
func TestOtherBuilds(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		ctx := t.Context()
		c, old := openClub(t, s, clubOf{}), openClub(t, s, clubOf{without: true})
		c.must(t, c.members.Insert(ctx, ann()))
		m := assert.Must[*member](t)(old.members.Get(ctx, tables.Key{Partition: "a", Row: "ann"}))
		m.Name = "Anna"
		for what, err := range map[string]error{"Replace": old.members.Replace(ctx, m), "Merge": old.members.Merge(ctx, m, "Name"), "Upsert": old.members.Upsert(ctx, ann()),
			"Delete": old.members.Delete(ctx, m), "DeleteUnconditional": old.members.DeleteUnconditional(ctx, tables.Key{Partition: "a", Row: "ann"})} {
			if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "email") || !strings.Contains(err.Error(), "OtherBuilds") {
				t.Errorf("%s by a build without the index: %v", what, err)
			}
		}
		c, old = openClub(t, s, clubOf{otherBuilds: true}), openClub(t, s, clubOf{without: true, otherBuilds: true})
		found, _ := c.find(t, annsEmail)
		found.Name = "Ann of the new build"
		c.must(t, c.members.Replace(ctx, found))
		c.wantFound(t, annsEmail, "Ann of the new build", 2)
		m = assert.Must[*member](t)(old.members.Get(ctx, tables.Key{Partition: "a", Row: "ann"}))
		m.Name = "Ann of the old build"
		old.must(t, old.members.Replace(ctx, m))
		c.wantFound(t, annsEmail, "Ann of the old build", 2)
		time.Sleep(time.Minute)
		c.wantFound(t, annsEmail, "Ann of the old build", 2)
		old.must(t, old.members.Delete(ctx, m))
		c.wantFound(t, annsEmail, "", 3)
	})
}

// TestReadyNeedsAFilledIndex: Ready fails as long as an index was never filled, or its key function has changed.
func TestReadyNeedsAFilledIndex(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		ctx := t.Context()
		old := openClub(t, s, clubOf{without: true})
		for _, m := range []*member{ann(), {PartitionKey: "b", RowKey: "ben", Email: "ben@contoso.com"}} {
			old.must(t, old.members.Insert(ctx, m))
		}
		c := openClub(t, s, clubOf{})
		if err := c.store.Ready(ctx); !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "Rebuild") {
			t.Errorf("with an empty index, Ready returns %v", err)
		}
		if _, err := c.members.Rebuild(ctx, nil); err != nil {
			t.Fatal(err)
		}
		if err := c.store.Ready(ctx); err != nil {
			t.Errorf("with a filled index, Ready returns %v", err)
		}
		before := c.calls.Load()
		if err := c.store.Ready(ctx); err != nil || c.calls.Load()-before != 2 {
			t.Errorf("later Ready makes %d requests: %v", c.calls.Load()-before, err)
		}
		c.wantFound(t, annsEmail, "Ann", 1)
	})
}

// TestOtherBuildsTidyNothing: while other builds may write, rows stay marked by intent, and no request is spent on them after their term.
func TestOtherBuildsTidyNothing(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		c := openClub(t, s, clubOf{otherBuilds: true})
		c.must(t, c.members.Insert(t.Context(), ann()))
		before := c.calls.Load()
		time.Sleep(2 * time.Minute)
		assert.Equal(t, c.calls.Load(), before, "requests")
	})
}
