package main

import (
	"context"
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
	At       time.Time
	Number   int
	Employee int
}

// row is rising: whatever is logged is logged behind all that was before.
func (e *Event) row() string {
	return compoundkey.Join("event", compoundkey.Time(e.At), compoundkey.Int(e.Number, 8))
}

func hourOf(t time.Time) string { return t.Format("2006010215") }

// newEvents makes the events of one second, of one employee after the other.
func newEvents(begin time.Time, n, first int) []*Event {
	all := make([]*Event, n)
	for i := range all {
		all[i] = &Event{At: begin.Add(time.Duration(i) * time.Second / time.Duration(n)).Truncate(100), Number: first + i, Employee: 1 + i%ofWhom}
	}
	return all
}

// events logs what rises in time, without one partition that takes it all.
func events(s *scene) func(context.Context) {
	nine := time.Date(2014, 8, 22, 9, 0, 0, 0, time.UTC)
	now := nine
	options := make([]*scatter.Options, 3)
	for i := range options {
		clock := func() time.Time { return now }
		options[i] = &scatter.Options{Meter: must(scatter.NewMeter(&scatter.MeterOptions{Now: clock})), Now: clock}
	}
	// The anti-pattern: one partition has all that comes. It is no repository of package scatter, so its meter is told.
	hourly := must(patterns.NewRepository(s.store.Table("EventsByHour"), schemaOf("event", func(e *Event) tables.Key {
		return tables.Key{Partition: hourOf(e.At), Row: e.row()}
	})))
	// The same rising keys, in partitions by a hash of the key.
	scattered := must(scatter.New(s.store.Table("Events"), scatter.Schema[Event]{
		Order: scatter.ByTime("event", time.Minute), Row: (*Event).row, Partitions: partitions,
	}, options[1]))
	// The solution of the guide: a partition an employee.
	natural := must(scatter.NewNatural(s.store.Table("EventsByEmployee"), scatter.NaturalSchema[Event]{
		Name: "event", Prefix: "event", Partition: func(e *Event) compoundkey.Part { return id(e.Employee) }, Row: (*Event).row,
	}, options[2]))
	return func(ctx context.Context) {
		byHour, byHash, byEmployee := options[0].Meter, options[1].Meter, options[2].Meter
		storm := newEvents(nine, atNine, 100)
		s.write("the events of one second at nine", "1,800 events in 4 partitions", func() {
			must(scattered.BulkNonAtomic(ctx, each(allFresh(storm)), nil))
		})
		byHour.Add(hourOf(nine), int(load(ctx, hourly, allFresh(storm)).Written))
		must(natural.BulkNonAtomic(ctx, each(allFresh(storm)), nil))
		s.addLoads("by the hour", byHour)
		s.addLoads("by a hash of the key", byHash)
		s.addLoads("by the employee", byEmployee)
		s.check(len(byHour.Hot()) == 1 && len(byHash.Hot())+len(byEmployee.Hot()) == 0, "the meters find other partitions hot")
		s.tell(fmt.Sprintf("Partitions that would do: %d", byHash.Enough()))

		// Reads pay for spreading: a range is gathered from all partitions, in order.
		tenth := between(nine.Add(200*time.Millisecond), nine.Add(300*time.Millisecond))
		ask(s, "a tenth of a second, in order",
			list(tables.RangeQuery, func() []*Event { return collect(scattered.Range(ctx, tenth.Span, nil)) }),
			query(ctx, hourly.Query().Partition(hourOf(nine)).Rows(tenth.Under("event"))))
		ask(s, "what employee 000060 did",
			list(tables.RangeQuery, func() []*Event {
				return collect(natural.Range(ctx, []compoundkey.Part{id(ofWhom)}, compoundkey.All(), nil))
			}),
			query(ctx, hourly.Query().Partition(hourOf(nine)).Where(tables.Eq("Employee", ofWhom))).through(atNine))

		// Events from the next minute on are spread over more partitions. What is stored stays where it is.
		s.act("more partitions", "16 in place of 4, from the next minute on", func() { must(scattered.Resize(ctx, 4*partitions)) })
		now = now.Add(2 * time.Minute)
		later := newEvents(now, atNine/10, 10_000)
		s.write("events of a second two minutes later", "180 events in 16 partitions", func() {
			must(scattered.BulkNonAtomic(ctx, each(allFresh(later)), nil))
		})
		try(sameAnswers(collect(scattered.Range(ctx, compoundkey.All(), nil)), slices.Concat(storm, later)))
	}
}

// addLoads adds what the partitions of a design had to take, the busiest first.
func (s *scene) addLoads(design string, meter *scatter.Meter) {
	s.tell("Writes to the partitions " + design + " in their busiest second, by the Meter:")
	all := meter.Loads()
	for i, load := range all {
		s.Loads = append(s.Loads, partitionLoad{Design: design, Partition: load.Partition, Writes: load.Peak, Share: load.Share})
		if i < partitions {
			s.tell(fmt.Sprintf("  %-20s%6s, %5.1f %% of the target", load.Partition, grouped(load.Peak), 100*load.Share))
		}
	}
	if more := len(all) - partitions; more > 0 {
		s.tell(fmt.Sprintf("  and %s with no more", counted(more, "partition")))
	}
}
