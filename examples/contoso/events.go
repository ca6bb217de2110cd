package main

import (
	"context"
	"fmt"
	"iter"
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

// events logs what rises in time, without one partition that takes it all. Guide: "Prepend/append anti-pattern".
func events() scenario {
	nine := time.Date(2014, 8, 22, 9, 0, 0, 0, time.UTC)
	return scenario{
		title: "Events of everybody, as they come",
		guide: "Prepend/append anti-pattern",
		plain: "the anti-pattern: a partition an hour",
		shows: []show{{"Prepend/append anti-pattern", "a tenth of a second, in order", "", "no hot partition; a range asks all of them"}},
		open: func(s *scene) func(context.Context) {
			now := nine
			meters := make([]*scatter.Meter, 3)
			for i := range meters {
				meters[i] = must(scatter.NewMeter(&scatter.MeterOptions{Now: func() time.Time { return now }}))
			}
			// The anti-pattern: one partition has all that comes. It is no repository of package scatter, so its meter is told.
			hourly := must(patterns.NewRepository(s.store.Table("EventsByHour"), patterns.Schema[Event]{
				Key: func(e *Event) tables.Key { return tables.Key{Partition: hourOf(e.At), Row: e.row()} }, Rows: compoundkey.Starting("event"),
			}))
			// The same rising keys, in partitions by a hash of the key.
			scattered := must(scatter.New(s.store.Table("Events"), scatter.Schema[Event]{
				Order: scatter.ByTime("event", time.Minute), Row: (*Event).row, Partitions: partitions,
			}, &scatter.Options{Meter: meters[1], Now: func() time.Time { return now }}))
			// The solution of the guide: a partition an employee.
			natural := must(scatter.NewNatural(s.store.Table("EventsByEmployee"), scatter.NaturalSchema[Event]{
				Name: "event", Prefix: "event", Partition: func(e *Event) compoundkey.Part { return id(e.Employee) }, Row: (*Event).row,
			}, &scatter.Options{Meter: meters[2], Now: func() time.Time { return now }}))
			return func(ctx context.Context) {
				storm := newEvents(nine, atNine, 100)
				s.write("the events of one second at nine", "1,800 events in 4 partitions", func() error {
					_, err := scattered.BulkNonAtomic(ctx, each(allFresh(storm)), nil)
					return err
				})
				meters[0].Add(hourOf(nine), int(must(hourly.BulkNonAtomic(ctx, each(allFresh(storm)), nil)).Written))
				must(natural.BulkNonAtomic(ctx, each(allFresh(storm)), nil))
				for i, design := range []string{"by the hour", "by a hash of the key", "by the employee"} {
					s.addLoads(design, meters[i])
				}
				s.check(len(meters[0].Hot()) == 1 && len(meters[1].Hot())+len(meters[2].Hot()) == 0, "the meters find other partitions hot")
				s.tell(fmt.Sprintf("Partitions that would do: %d", meters[1].Enough()))

				// What is spread is gathered from all partitions, in order. This is what spreading costs.
				tenth := between(nine.Add(200*time.Millisecond), nine.Add(300*time.Millisecond))
				ask(ctx, s, "a tenth of a second, in order",
					sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*Event, error] { return scattered.Range(ctx, tenth, nil) }),
					query(hourly.Query().Partition(hourOf(nine)).Rows(tenth.Under("event"))))
				ask(ctx, s, "what employee 000060 did",
					sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*Event, error] {
						return natural.Range(ctx, []compoundkey.Part{id(ofWhom)}, compoundkey.All(), nil)
					}),
					query(hourly.Query().Partition(hourOf(nine)).Where(tables.Eq("Employee", ofWhom))).through(atNine))

				// What comes from the next minute on is spread over more partitions. What is stored stays where it is.
				s.act("more partitions", "16 in place of 4, from the next minute on", func() error {
					_, err := scattered.Resize(ctx, 4*partitions)
					return err
				})
				now = now.Add(2 * time.Minute)
				later := newEvents(now, atNine/10, 10_000)
				s.write("events of a second two minutes later", "180 events in 16 partitions", func() error {
					_, err := scattered.BulkNonAtomic(ctx, each(allFresh(later)), nil)
					return err
				})
				all := must(collect(scattered.Range(ctx, compoundkey.All(), nil)))
				try(sameAnswers(all, slices.Concat(storm, later)))
			}
		},
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
