package main

import (
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	atNine     = 1800 // events in the second when everybody begins to work: most of what a partition is built for
	ofWhom     = 60   // employees
	partitions = 4    // that events are spread over at first
)

// Event is an access to the network that was logged.
type Event struct {
	tables.Meta
	At         time.Time
	Number     int
	Department string
	Employee   int
	Resource   string
}

// eventRecord is what two Events must have in common to be the same.
type eventRecord struct {
	at                   int64
	number, employee     int
	department, resource string
}

func (e *Event) record() eventRecord {
	return eventRecord{e.At.UnixNano(), e.Number, e.Employee, e.Department, e.Resource}
}

// row is rising: whoever is logged is logged behind all others.
func (e *Event) row() string {
	return compoundkey.Join("event", compoundkey.Time(e.At), compoundkey.Int(e.Number, 8))
}

// who is the natural key.
func (e *Event) who() compoundkey.Part { return employeePart(e.Department, e.Employee) }

func employeePart(department string, n int) compoundkey.Part {
	return compoundkey.Tuple(compoundkey.String(department), id(n))
}

// nine is when it begins.
func nine() time.Time { return time.Date(2014, 8, 22, 9, 0, 0, 0, time.UTC) }

// newEvents makes the events of one second, of one employee after the other.
func newEvents(staff []*Employee, begin time.Time, n, first int) []*Event {
	resources := []string{"printer", "mail", "door", "intranet", "files"}
	events := make([]*Event, n)
	for i := range events {
		e := staff[i%len(staff)]
		events[i] = &Event{At: begin.Add(time.Duration(i) * time.Second / time.Duration(n)).Truncate(100), Number: first + i,
			Department: e.Department, Employee: e.ID, Resource: resources[i%len(resources)]}
	}
	return events
}

// unwritten returns the event without Meta, as if it was never read or written.
func (e *Event) unwritten() *Event {
	twin := *e
	twin.Meta = tables.Meta{}
	return &twin
}

// newScattered is the table with the pattern: the same rising keys, in partitions by a hash of the key.
func newScattered(table *tables.Table, o *scatter.Options) (*scatter.Spread[Event], error) {
	return scatter.New(table, scatter.Schema[Event]{Order: scatter.ByTime("event", time.Minute), Row: (*Event).row, Partitions: partitions}, o)
}

// newNatural is the guide's own solution: a partition an employee.
func newNatural(table *tables.Table, o *scatter.Options) (*scatter.Natural[Event], error) {
	return scatter.NewNatural(table, scatter.NaturalSchema[Event]{Name: "event", Prefix: "event", Partition: (*Event).who, Row: (*Event).row}, o)
}

// newHourly is the anti-pattern: a partition an hour, so that one partition has all that comes.
func newHourly(table *tables.Table) (*patterns.Repository[Event], error) {
	return patterns.NewRepository(table, patterns.Schema[Event]{
		Key:  func(e *Event) tables.Key { return tables.Key{Partition: hourOf(e.At), Row: e.row()} },
		Rows: compoundkey.Starting("event"),
	})
}

func hourOf(t time.Time) string { return t.Format("2006010215") }

// loads are the busiest partitions of a meter, in lines of text, and how many there are.
func loads(meter *scatter.Meter) []string {
	all := meter.Loads()
	var lines []string
	for _, load := range all[:min(len(all), partitions)] {
		hot := ""
		if slices.Contains(meter.Hot(), load) {
			hot = ", hot"
		}
		lines = append(lines, fmt.Sprintf("  %-40s%6s in its busiest second, %5.1f %% of the target%s", load.Partition, grouped(load.Peak), 100*load.Share, hot))
	}
	if more := len(all) - len(lines); more > 0 {
		lines = append(lines, fmt.Sprintf("  and %s with no more", counted(more, "partition")))
	}
	return lines
}
