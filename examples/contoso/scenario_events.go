package main

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/tables"
)

// events logs what rises in time, without one partition that takes it all.
func events() scenario {
	return scenario{
		title: "Events of everybody, as they come",
		guide: "Prepend/append anti-pattern",
		shows: []show{
			{"Prepend/append anti-pattern", "a tenth of a second, in order", "", "no hot partition; a range asks all of them"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			l, err := c.openLog(ctx)
			if err != nil {
				return err
			}
			s.Plain = "the anti-pattern: a partition an hour"
			return steps(ctx, s, l.begin, l.load, l.askForTime, l.askForEmployee, l.grow, l.check)
		},
	}
}

// eventLog is the same events in three tables, each with a meter of what its partitions had to take.
type eventLog struct {
	c      *company
	now    time.Time // of the events, which the meters and the log go by
	events []*Event  // in their order

	scattered *scatter.Spread[Event]
	natural   *scatter.Natural[Event]
	hourly    *patterns.Repository[Event]

	ofScattered, ofNatural, ofHourly *scatter.Meter
}

func (c *company) openLog(ctx context.Context) (*eventLog, error) {
	l := &eventLog{c: c, now: nine()}
	clock := func() time.Time { return l.now }
	for _, meter := range []**scatter.Meter{&l.ofScattered, &l.ofNatural, &l.ofHourly} {
		var err error
		if *meter, err = scatter.NewMeter(&scatter.MeterOptions{Now: clock}); err != nil {
			return nil, err
		}
	}
	table, err := c.table(ctx, "Events")
	if err != nil {
		return nil, err
	}
	if l.scattered, err = newScattered(table, &scatter.Options{Meter: l.ofScattered, Now: clock}); err != nil {
		return nil, err
	}
	if table, err = c.table(ctx, "EventsByEmployee"); err != nil {
		return nil, err
	}
	if l.natural, err = newNatural(table, &scatter.Options{Meter: l.ofNatural, Now: clock}); err != nil {
		return nil, err
	}
	if table, err = c.table(ctx, "EventsByHour"); err != nil {
		return nil, err
	}
	l.hourly, err = newHourly(table)
	return l, err
}

// begin inserts the first events one by one: of the first, the log remembers how far its partitions are decided.
func (l *eventLog) begin(ctx context.Context, s *section) error {
	early := newEvents(l.c.staff[:2], nine().Add(-time.Second), 2, 1)
	l.events = append(l.events, early...)
	for i, what := range []string{"the first event of a minute", "the next one"} {
		if err := l.c.act(s, what, func() (string, error) {
			err := l.scattered.Insert(ctx, early[i])
			return "in " + early[i].Key().Partition, err
		}); err != nil {
			return err
		}
	}
	return l.insertOthers(ctx, early)
}

// insertOthers stores events in the two other tables, too.
func (l *eventLog) insertOthers(ctx context.Context, events []*Event) error {
	if _, err := l.natural.BulkNonAtomic(ctx, unwritten(events), nil); err != nil {
		return err
	}
	for _, e := range events {
		l.ofHourly.Add(hourOf(e.At), 1)
	}
	_, err := l.hourly.BulkNonAtomic(ctx, unwritten(events), nil)
	return err
}

func unwritten(events []*Event) iter.Seq2[*Event, error] {
	return func(yield func(*Event, error) bool) {
		for _, e := range events {
			if !yield(e.unwritten(), nil) {
				return
			}
		}
	}
}

// load stores what comes in one second at nine.
func (l *eventLog) load(ctx context.Context, s *section) error {
	storm := newEvents(l.c.staff[:ofWhom], nine(), atNine, 100)
	if err := l.store(ctx, s, "the events of one second at nine", storm); err != nil {
		return err
	}
	for _, x := range []struct {
		design string
		meter  *scatter.Meter
		hot    int
	}{{"by the hour", l.ofHourly, 1}, {"by a hash of the key", l.ofScattered, 0}, {"by the employee", l.ofNatural, 0}} {
		s.Text = append(s.Text, "Partitions "+x.design+", by the Meter:")
		s.Text = append(s.Text, loads(x.meter)...)
		total := 0
		for _, load := range x.meter.Loads() {
			total += load.Total
		}
		if hot := len(x.meter.Hot()); hot != x.hot || total != len(l.events) {
			return fmt.Errorf("%s: %d of the partitions are hot, and %d events were counted", x.design, hot, total)
		}
	}
	s.Text = append(s.Text, fmt.Sprintf("Partitions that would do: %d", l.ofScattered.Enough()))
	return nil
}

func (l *eventLog) store(ctx context.Context, s *section, what string, events []*Event) error {
	if err := l.c.exposed(s, what, func() (string, error) {
		done, err := l.scattered.BulkNonAtomic(ctx, each(events), nil)
		return fmt.Sprintf("%s in %s", counted(int(done.Written), "event"), counted(int(done.Transactions), "transaction")), err
	}); err != nil {
		return err
	}
	l.events = append(l.events, events...)
	return l.insertOthers(ctx, events)
}

// askForTime: what is spread is gathered from all partitions, in order. This is what spreading costs.
func (l *eventLog) askForTime(ctx context.Context, s *section) error {
	span := between(nine().Add(200*time.Millisecond), nine().Add(300*time.Millisecond))
	without, err := answering(l.hourly.Query().Partition(hourOf(nine())).Rows(span.Under("event")))
	if err != nil {
		return err
	}
	return ask(ctx, l.c, s, asked[Event, eventRecord]{text: "a tenth of a second, in order", without: without, record: (*Event).record,
		with: wayTo[Event]{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*Event, error] {
			return l.scattered.Range(ctx, span, nil)
		}}})
}

// askForEmployee: spread by the employee, what one of them did is together; by the hour, the whole partition is read.
func (l *eventLog) askForEmployee(ctx context.Context, s *section) error {
	e := l.c.employee(ofWhom)
	without, err := answering(l.hourly.Query().Partition(hourOf(nine())).Where(tables.Eq("Department", e.Department), tables.Eq("Employee", e.ID)))
	if err != nil {
		return err
	}
	without.searched = atNine
	return ask(ctx, l.c, s, asked[Event, eventRecord]{text: fmt.Sprintf("what employee %06d did", e.ID), without: without, record: (*Event).record,
		with: wayTo[Event]{class: tables.RangeQuery, ask: func(ctx context.Context) iter.Seq2[*Event, error] {
			return l.natural.Range(ctx, []compoundkey.Part{employeePart(e.Department, e.ID)}, compoundkey.All(), nil)
		}}})
}

// grow has what comes from the next minute on spread over more partitions. What is stored stays where it is.
func (l *eventLog) grow(ctx context.Context, s *section) error {
	const more = 4 * partitions
	if err := l.c.act(s, "more partitions", func() (string, error) {
		epoch, err := l.scattered.Resize(ctx, more)
		if err == nil && (epoch.Partitions != more || !epoch.Time.After(l.now)) {
			return "", fmt.Errorf("%d partitions from %v on", epoch.Partitions, epoch.Time)
		}
		return fmt.Sprintf("%d in place of %d, from %s on", more, partitions, epoch.Time.Format(time.TimeOnly)), err
	}); err != nil {
		return err
	}
	l.now = l.now.Add(2 * time.Minute)
	return l.store(ctx, s, "events of a second two minutes later", newEvents(l.c.staff[:ofWhom], l.now, atNine/10, 10_000))
}

// check reads everything: the old partitions and the new.
func (l *eventLog) check(ctx context.Context, s *section) error {
	return l.c.act(s, "all events, in order", func() (string, error) {
		next, used := 0, map[string]bool{}
		for e, err := range l.scattered.Range(ctx, compoundkey.All(), nil) {
			if err != nil {
				return "", err
			}
			if next == len(l.events) || e.record() != l.events[next].record() {
				return "", fmt.Errorf("event %d is not the one that came then", next+1)
			}
			next++
			used[e.Key().Partition] = true
		}
		if next != len(l.events) {
			return "", fmt.Errorf("%d events of %d", next, len(l.events))
		}
		return fmt.Sprintf("%s from %s, each once and as it came", counted(next, "event"), counted(len(used), "partition")), nil
	})
}
