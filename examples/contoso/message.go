package main

import (
	"fmt"
	"iter"
	"math/rand/v2"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	hoursADay = 24
	daysAYear = 365
	theYear   = 2013
)

// count is how many messages an employee has sent in an hour of a day, or on a day of a year. Where none were sent, there is none.
type count struct {
	slot     int
	messages int64
}

func (n *count) record() count { return *n }

// Message is one that an employee has sent: without the pattern, messages are counted when the question is asked.
type Message struct {
	PartitionKey string
	RowKey       string
	Text         string
}

// Hour is what an employee has sent in an hour: without the pattern, a row of its own.
type Hour struct {
	PartitionKey string
	RowKey       string
	Messages     int64
}

// sender is the partition of what an employee has sent.
func sender(n int) string { return compoundkey.Join("empid", id(n)) }

// theDay is the one whose hours are asked for.
func theDay() time.Time { return time.Date(theYear, 11, 20, 0, 0, 0, 0, time.UTC) }

// dayKey is of the series of a day, by the hour.
func dayKey(employee int, day time.Time) tables.Key {
	return tables.Key{Partition: sender(employee), Row: compoundkey.Join("messages", compoundkey.String(day.Format("20060102")))}
}

// yearKey is of the series of a year, by the day.
func yearKey(employee, year int) tables.Key {
	return tables.Key{Partition: sender(employee), Row: compoundkey.Join("year", compoundkey.Int(year, 4))}
}

func newMessage(employee int, at time.Time, n int) *Message {
	return &Message{PartitionKey: sender(employee), RowKey: compoundkey.Join("message", compoundkey.Time(at), id(n)),
		Text: fmt.Sprintf("Message %d of %s", n, at.Format(time.DateOnly))}
}

func newHour(employee int, at time.Time, messages int64) *Hour {
	return &Hour{PartitionKey: sender(employee), RowKey: compoundkey.Join("hour", compoundkey.Time(at)), Messages: messages}
}

// at is when a row was sent, by its key.
func at(rowKey, prefix string, more ...compoundkey.Target) (t time.Time, err error) {
	err = compoundkey.Parse(rowKey, prefix, append([]compoundkey.Target{compoundkey.ToTime(&t)}, more...)...)
	return t, err
}

// newYear makes the messages of an employee's year by the hour: on the mornings of working days, from 9 to 13, as the seed says.
func newYear(seed uint64) map[time.Time]int64 {
	random := rand.New(rand.NewPCG(seed, 0x6d657373616765))
	hours := map[time.Time]int64{}
	for day := time.Date(theYear, 1, 1, 0, 0, 0, 0, time.UTC); day.Year() == theYear; day = day.AddDate(0, 0, 1) {
		if day.Weekday() == time.Saturday || day.Weekday() == time.Sunday {
			continue
		}
		for hour := 9; hour < 13; hour++ {
			hours[day.Add(time.Duration(hour)*time.Hour)] = 260 + random.Int64N(100)
		}
	}
	return hours
}

// counts are the values of a series that are there.
func counts(values *dataseries.Values[int64]) []*count {
	var all []*count
	for i, slot := range values.Slots {
		if slot.Present {
			all = append(all, &count{i, slot.Value})
		}
	}
	return all
}

// addUp makes one count of rows that follow each other in the same slot.
func addUp[T any](rows iter.Seq2[*T, error], of func(*T) (count, error)) iter.Seq2[*count, error] {
	return func(yield func(*count, error) bool) {
		var sum *count
		for row, err := range rows {
			var n count
			if err == nil {
				n, err = of(row)
			}
			switch {
			case err != nil:
				yield(nil, err)
				return
			case sum == nil:
				sum = &n
			case sum.slot == n.slot:
				sum.messages += n.messages
			case !yield(sum, nil):
				return
			default:
				sum = &n
			}
		}
		if sum != nil {
			yield(sum, nil)
		}
	}
}

// ofHour counts a row of an hour by the hour of the day.
func ofHour(h *Hour) (count, error) {
	t, err := at(h.RowKey, "hour")
	return count{t.Hour(), h.Messages}, err
}

// ofDay counts a row of an hour by the day of the year.
func ofDay(h *Hour) (count, error) {
	t, err := at(h.RowKey, "hour")
	return count{t.YearDay() - 1, h.Messages}, err
}

// ofMessage counts a message by the hour of the day.
func ofMessage(m *Message) (count, error) {
	var n int
	t, err := at(m.RowKey, "message", compoundkey.ToInt(&n, 6))
	return count{t.Hour(), 1}, err
}
