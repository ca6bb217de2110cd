package main

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	chatting = 8 // employees, who send
	inMinute = 5 // messages each, which the queue delivers twice
)

// messages counts what employees send by the hour and by the day, each series in an entity.
func messages() scenario {
	return scenario{
		title: "Messages by the hour and by the day",
		guide: "Data series pattern",
		shows: []show{
			{"Data series", "a year by the day, entity an hour", "", "a message that comes twice counts once"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			m, err := c.openMessages(ctx)
			if err != nil {
				return err
			}
			s.Plain = "an entity a message or an hour"
			return steps(ctx, s, m.load, m.askForDay, m.askForYear, m.countOnce, m.deliverTwice)
		},
	}
}

// counters are the series of employees, and the entities that would be counted without them.
type counters struct {
	c     *company
	days  *dataseries.Counter[int64] // 24 hours, one row
	years *dataseries.Series[int64]  // 365 days, two rows; set, and never added to
	queue *eventual.Queue            // of messages to be counted

	sent  *tables.Rows[Message]
	hours *tables.Rows[Hour]
}

func (c *company) openMessages(ctx context.Context) (*counters, error) {
	m := &counters{c: c}
	series, err := c.table(ctx, "Series")
	if err != nil {
		return nil, err
	}
	sent, err := c.table(ctx, "Messages")
	if err != nil {
		return nil, err
	}
	hours, err := c.table(ctx, "Hours")
	if err != nil {
		return nil, err
	}
	if m.queue, err = c.queue(ctx, "messages", nil); err != nil {
		return nil, err
	}
	if m.days, err = dataseries.NewCounter[int64](series, "Hour_", hoursADay, nil); err != nil {
		return nil, err
	}
	if m.years, err = dataseries.New[int64](series, "Day_", daysAYear, &dataseries.Options{SlotsPerRow: 200}); err != nil {
		return nil, err
	}
	if m.sent, err = tables.RowsOf[Message](sent); err != nil {
		return nil, err
	}
	m.hours, err = tables.RowsOf[Hour](hours)
	return m, err
}

// load stores June Jones's year by the day and one day of it by the hour; and the same as an entity each hour, and each message of the day.
func (m *counters) load(ctx context.Context, s *section) error {
	year := newYear(m.c.options.seed)
	byHour, byDay := map[int]int64{}, map[int]int64{}
	var sent []*Message
	var hours []*Hour
	for _, t := range slices.SortedFunc(maps.Keys(year), time.Time.Compare) {
		hours = append(hours, newHour(jones, t, year[t]))
		byDay[t.YearDay()-1] += year[t]
		if !t.Truncate(24 * time.Hour).Equal(theDay()) {
			continue
		}
		byHour[t.Hour()] = year[t]
		for range year[t] {
			sent = append(sent, newMessage(jones, t.Add(time.Duration(len(sent))*time.Second), len(sent)))
		}
	}
	if err := m.c.exposed(s, "a day and a year of one employee", func() (string, error) {
		if err := m.days.SetMany(ctx, dayKey(jones, theDay()), byHour); err != nil {
			return "", err
		}
		return fmt.Sprintf("%d hours in 1 row, %d days in 2 rows", len(byHour), len(byDay)), m.years.SetMany(ctx, yearKey(jones, theYear), byDay)
	}); err != nil {
		return err
	}
	if _, err := m.hours.BulkNonAtomic(ctx, each(hours), nil); err != nil {
		return err
	}
	_, err := m.sent.BulkNonAtomic(ctx, each(sent), nil)
	return err
}

// counting is the way of adding rows up. Which of them it finds, the service has to go through.
func counting[T any](ctx context.Context, q tables.Query[T], of func(*T) (count, error)) (wayTo[count], error) {
	plan, err := q.Plan()
	if err != nil {
		return wayTo[count]{}, err
	}
	rows, err := collect(q.All(ctx))
	return wayTo[count]{class: plan.Class, searched: len(rows), ask: func(ctx context.Context) iter.Seq2[*count, error] {
		return addUp(q.All(ctx), of)
	}}, err
}

// seriesOf is the way of a series, of which all is read at once.
func seriesOf(x *dataseries.Series[int64], key tables.Key, class tables.QueryClass, rows int) wayTo[count] {
	return wayTo[count]{class: class, searched: rows, ask: func(ctx context.Context) iter.Seq2[*count, error] {
		return func(yield func(*count, error) bool) {
			values, err := x.Read(ctx, key)
			if err != nil {
				yield(nil, err)
				return
			}
			each(counts(values))(yield)
		}
	}}
}

func between(from, to time.Time) compoundkey.Span {
	return compoundkey.Between(compoundkey.Time(from), compoundkey.Time(to))
}

// askForDay asks for the 24 hours of a day, against both ways of keeping entities.
func (m *counters) askForDay(ctx context.Context, s *section) error {
	span, with := between(theDay(), theDay().AddDate(0, 0, 1)), seriesOf(m.days.Series, dayKey(jones, theDay()), tables.PointQuery, 1)
	without, err := counting(ctx, m.sent.Query().Partition(sender(jones)).Rows(span.Under("message")), ofMessage)
	if err != nil {
		return err
	}
	if err := ask(ctx, m.c, s, asked[count, count]{text: "a day by the hour, entity a message", with: with, without: without, record: (*count).record}); err != nil {
		return err
	}
	without, err = counting(ctx, m.hours.Query().Partition(sender(jones)).Rows(span.Under("hour")), ofHour)
	if err != nil {
		return err
	}
	return ask(ctx, m.c, s, asked[count, count]{text: "a day by the hour, entity an hour", with: with, without: without, record: (*count).record})
}

func (m *counters) askForYear(ctx context.Context, s *section) error {
	first := time.Date(theYear, 1, 1, 0, 0, 0, 0, time.UTC)
	without, err := counting(ctx, m.hours.Query().Partition(sender(jones)).Rows(between(first, first.AddDate(1, 0, 0)).Under("hour")), ofDay)
	if err != nil {
		return err
	}
	return ask(ctx, m.c, s, asked[count, count]{text: "a year by the day, entity an hour", without: without, record: (*count).record,
		with: seriesOf(m.years, yearKey(jones, theYear), tables.RangeQuery, 2)})
}

// countOnce counts one message, and once more what is the same message.
func (m *counters) countOnce(ctx context.Context, s *section) error {
	key := dayKey(jones, theDay().AddDate(0, 0, 1))
	for _, x := range []struct {
		what, outcome string
		counted       bool
	}{
		{"a message counted", "1 row and a marker with the message's name, in 1 transaction", true},
		{"the same message once more", "it was counted, and is not again", false},
	} {
		if err := m.c.act(s, x.what, func() (string, error) {
			counted, err := m.days.AddOnce(ctx, key, 9, 1, "message 1")
			if err == nil && counted != x.counted {
				return "", fmt.Errorf("counted is %v", counted)
			}
			return x.outcome, err
		}); err != nil {
			return err
		}
	}
	return nil
}

// delivery is the body of a message to be counted.
type delivery struct {
	ID     string
	Sender int
	Hour   int
}

// deliverTwice has a worker count messages that each sender has put on the queue twice, as one does who has not heard of the
// first time. Beside what is counted once, the worker adds without a name.
func (m *counters) deliverTwice(ctx context.Context, s *section) error {
	senders := m.c.staff[:chatting]
	counted, added := theDay().AddDate(0, 0, 2), theDay().AddDate(0, 0, 3)
	worker, err := eventual.NewWorker(m.queue, map[string]eventual.Handler{"sent": func(ctx context.Context, message *eventual.Message) error {
		var d delivery
		if err := message.Decode(&d); err != nil {
			return err
		}
		if _, err := m.days.AddOnce(ctx, dayKey(d.Sender, counted), d.Hour, 1, d.ID); err != nil {
			return err
		}
		return m.days.Add(ctx, dayKey(d.Sender, added), d.Hour, 1)
	}}, &eventual.WorkerOptions{RetryDelay: func(int) time.Duration { return 0 }})
	if err != nil {
		return err
	}
	return m.c.exposed(s, "messages delivered twice", func() (string, error) {
		if err := together(ctx, senders, m.sendTwice); err != nil {
			return "", err
		}
		if err := m.c.drain(ctx, worker, m.queue); err != nil {
			return "", err
		}
		once, err := m.total(ctx, senders, counted)
		if err != nil {
			return "", err
		}
		twice, err := m.total(ctx, senders, added)
		if err != nil {
			return "", err
		}
		if once != chatting*inMinute || twice < 2*once {
			return "", fmt.Errorf("of %d messages, AddOnce has counted %d, Add %d", chatting*inMinute, once, twice)
		}
		return fmt.Sprintf("of %d messages, AddOnce has counted %d, Add %d", chatting*inMinute, once, twice), nil
	})
}

func (m *counters) sendTwice(ctx context.Context, e *Employee) error {
	for n := range 2 * inMinute {
		d := delivery{ID: fmt.Sprintf("message %d", n/2), Sender: e.ID, Hour: 9 + n/2}
		if err := again(ctx, func() error { _, err := m.queue.Send(ctx, "sent", d, nil); return err }); err != nil {
			return err
		}
	}
	return nil
}

// total adds the hours of several employees up.
func (m *counters) total(ctx context.Context, senders []*Employee, day time.Time) (int, error) {
	var lock sync.Mutex
	total := 0
	err := together(ctx, senders, func(ctx context.Context, e *Employee) error {
		values, err := m.days.Read(ctx, dayKey(e.ID, day))
		if err != nil {
			return err
		}
		lock.Lock()
		defer lock.Unlock()
		for _, n := range counts(values) {
			total += int(n.messages)
		}
		return nil
	})
	return total, err
}
