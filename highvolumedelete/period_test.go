package highvolumedelete_test

import (
	"slices"
	"strings"
	"testing"
	"time"
	_ "time/tzdata" // the locations must be the same on every machine

	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func location(t testing.TB, name string) *time.Location {
	t.Helper()
	return assert.Must[*time.Location](t)(time.LoadLocation(name))
}

// TestGoldenNames pins the names of tables: those that exist must be found for ever.
func TestGoldenNames(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	berlin, samoa, kolkata := location(t, "Europe/Berlin"), location(t, "Pacific/Apia"), location(t, "Asia/Kolkata")
	at := func(text string) time.Time { return assert.Must[time.Time](t)(time.Parse(time.RFC3339Nano, text)) }
	for _, c := range []struct {
		unit     highvolumedelete.Unit
		location *time.Location
		at, want string
	}{
		{highvolumedelete.Day, nil, "2014-08-22T00:00:00Z", "LoginsD20140822"},
		{highvolumedelete.Day, nil, "2014-08-21T23:59:59.9999999Z", "LoginsD20140821"},
		{highvolumedelete.Day, nil, "2014-08-22T01:30:00+02:00", "LoginsD20140821"},
		{highvolumedelete.Day, berlin, "2014-08-21T22:00:00Z", "LoginsD20140822"},
		{highvolumedelete.Day, berlin, "2014-08-21T21:59:59.9999999Z", "LoginsD20140821"},
		{highvolumedelete.Day, samoa, "2011-12-30T09:59:59Z", "LoginsD20111229"}, // the island had no 30th
		{highvolumedelete.Day, samoa, "2011-12-30T10:00:00Z", "LoginsD20111231"},
		{highvolumedelete.Hour, nil, "2014-08-22T23:59:59Z", "LoginsH2014082223"},
		{highvolumedelete.Hour, berlin, "2014-10-26T02:30:00+02:00", "LoginsH2014102600"}, // this local hour comes twice
		{highvolumedelete.Hour, berlin, "2014-10-26T02:30:00+01:00", "LoginsH2014102601"},
		{highvolumedelete.Hour, kolkata, "2014-08-22T00:29:00+05:30", "LoginsH2014082118"},
		{highvolumedelete.Week, nil, "2014-08-24T23:59:59Z", "LoginsW20140818"}, // a Sunday
		{highvolumedelete.Week, nil, "2014-08-25T00:00:00Z", "LoginsW20140825"}, // a Monday
		{highvolumedelete.Week, nil, "2015-01-01T00:00:00Z", "LoginsW20141229"},
		{highvolumedelete.Week, berlin, "2014-08-24T22:00:00Z", "LoginsW20140825"},
		{highvolumedelete.Month, nil, "2014-08-31T23:59:59Z", "LoginsM201408"},
		{highvolumedelete.Month, berlin, "2014-08-31T22:00:00Z", "LoginsM201409"},
		{highvolumedelete.Day, nil, "0001-01-01T00:00:00Z", "LoginsD00010101"},
		{highvolumedelete.Week, nil, "0001-01-01T00:00:00Z", "LoginsW00010101"},
		{highvolumedelete.Month, nil, "9999-12-31T23:59:59.9999999Z", "LoginsM999912"},
	} {
		schema := schemaOf("Logins", nil)
		schema.Unit, schema.Location = c.unit, c.location
		if got, err := mustStart(t, s, schema).TableName(at(c.at)); err != nil || got != c.want {
			t.Errorf("%v %v of %s is %q, want %q (%v)", c.unit, c.location, c.at, got, c.want, err)
		}
	}
	logins := mustStart(t, s, schemaOf("Logins", nil))
	assert.Equal(t, logins.Control().Name(), "LoginsRetention", "the control table")
	assert.ErrorIs(t, assert.Err(logins.TableName(time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC))), tables.ErrInvalid, "the year 10000")
}

// TestNamesSort: the names of a unit sort as time does, over years and changes of clocks, and each is read back.
func TestNamesSort(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for _, place := range []string{"UTC", "Europe/Berlin", "America/Sao_Paulo", "Pacific/Apia", "Australia/Lord_Howe"} {
		for unit := highvolumedelete.Day; unit <= highvolumedelete.Month; unit++ {
			schema := schemaOf("Logins", nil)
			schema.Unit, schema.Location = unit, location(t, place)
			logins := mustStart(t, s, schema)
			last, names := "", 0
			for at := time.Date(2011, 12, 1, 0, 0, 0, 0, time.UTC); at.Year() < 2013; at = at.Add(30 * time.Minute) {
				name := assert.Must[string](t)(logins.TableName(at))
				if name < last {
					t.Fatalf("%v in %s: %v has %s, and what is before it %s", unit, place, at, name, last)
				}
				if name != last {
					last = name
					names++
				}
			}
			if want := map[highvolumedelete.Unit]int{highvolumedelete.Hour: 9528, highvolumedelete.Day: 396, highvolumedelete.Week: 56, highvolumedelete.Month: 13}[unit]; names < want || names > want+2 {
				t.Errorf("%v in %s: %d names, want about %d", unit, place, names, want)
			}
		}
	}
}

// TestListTakesItsOwn: tables of other units, other names, and names that are nearly right are left alone.
func TestListTakesItsOwn(t *testing.T) {
	ctx, s := t.Context(), storagetest.Open(t)
	name := nameOf(t, s)
	logins := mustStart(t, s, schemaOf(name, func() time.Time { return noon }))
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	for _, label := range []string{"D20140820", "D20140819", "D20140230", "D2014081", "D201408190", "H2014081900", "W20140818", "M201408", "D20140822", "D20140101x", "DD20140101", "Other"} {
		assert.Check(t, account.Table(name+label).Create(ctx))
	}
	if got := assert.Must[[]string](t)(logins.List(ctx)); labels(got, name) != "[D20140819 D20140820 D20140822]" {
		t.Errorf("the tables are %v", got)
	}
	report := assert.Must[highvolumedelete.DropReport](t)(logins.Drop(ctx, noon, noGrace()))
	assert.Equal(t, labels(report.Tables, name), "[D20140819 D20140820]", "dropped are %v", report.Tables)
	left := 0
	pager := account.TableService().NewListTablesPager(nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		assert.Check(t, err)
		for _, table := range page.Tables {
			if strings.HasPrefix(*table.Name, name) {
				left++
			}
		}
	}
	if left != 11 { // 10 of 12, and the control table
		t.Errorf("%d tables are left, want 11", left)
	}
}

func TestNewRefuses(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	for name, change := range map[string]func(*highvolumedelete.Schema[login]){
		"no name":    func(s *highvolumedelete.Schema[login]) { s.Name = "" },
		"long name":  func(s *highvolumedelete.Schema[login]) { s.Name = strings.Repeat("a", 53) },
		"digit":      func(s *highvolumedelete.Schema[login]) { s.Name = "1a" },
		"underscore": func(s *highvolumedelete.Schema[login]) { s.Name = "a_b" },
		"no time":    func(s *highvolumedelete.Schema[login]) { s.Time = nil },
		"no open":    func(s *highvolumedelete.Schema[login]) { s.Open = nil },
		"unit":       func(s *highvolumedelete.Schema[login]) { s.Unit = 9 },
		"order":      func(s *highvolumedelete.Schema[login]) { s.RowOrder = 9 },
	} {
		schema := schemaOf("Logins", nil)
		change(&schema)
		assert.ErrorIs(t, assert.Err(start(s, schema)), tables.ErrWiring, name)
	}
	schema := schemaOf("Logins", nil)
	schema.Open = func(table *tables.Table) (*patterns.Repository[login], error) {
		return openLogins(table.Account().Table("Another"))
	}
	assert.ErrorIs(t, mustStart(t, s, schema).Insert(t.Context(), &login{At: time.Now()}), tables.ErrWiring, "Open with another table")
	assert.ErrorIs(t, mustStart(t, s, schemaOf("Logins", nil)).Insert(t.Context(), nil), tables.ErrInvalid, "Insert(nil)")
	if units := []string{highvolumedelete.Day.String(), highvolumedelete.Hour.String(), highvolumedelete.Unit(9).String()}; !slices.Equal(units, []string{"Day", "Hour", "Unit(9)"}) {
		t.Errorf("units are called %v", units)
	}
}
