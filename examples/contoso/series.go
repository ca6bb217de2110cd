package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// sender is the partition of what an employee has sent, claimed or done.
func sender(n int) string { return compoundkey.Join("empid", id(n)) }

func between(from, to time.Time) compoundkey.Interval[time.Time] {
	return compoundkey.Between(from, to)
}

// Hour is how many messages an employee has sent in an hour: without the pattern, a row of its own.
type Hour struct {
	PartitionKey, RowKey string
	At                   time.Time
	Messages             int64
}

// dayCount is how many messages were sent on a day of a year.
type dayCount struct {
	day      int
	messages int64
}

// messages counts what an employee sends by the hour and by the day, each series in an entity.
func messages(s *scene) func(context.Context) {
	series := s.store.Table("Series")
	day := must(dataseries.NewCounter[int64](series, "Hour_", 24, nil)) // one row
	year := must(dataseries.New[int64](series, "Day_", 365, &dataseries.Options{SlotsPerRow: 200}))
	hours := must(tables.RowsOf[Hour](s.store.Table("Hours")))
	queue := must(eventual.OpenQueue(s.store, "messages", &eventual.QueueOptions{VisibilityTimeout: chaosVisibility}))
	yearKey := tables.Key{Partition: sender(jones), Row: compoundkey.Join("year", compoundkey.Int(2013, 4))}
	dayKey := tables.Key{Partition: sender(jones), Row: compoundkey.Join("messages", compoundkey.String("20131120"))}
	return func(ctx context.Context) {
		byDay := map[int]int64{}
		var all []*Hour
		for t := time.Date(2013, 1, 1, 9, 0, 0, 0, time.UTC); t.Year() == 2013; t = t.AddDate(0, 0, 1) {
			for at := t; at.Hour() < 13; at = at.Add(time.Hour) {
				h := &Hour{PartitionKey: sender(jones), RowKey: compoundkey.Join("hour", compoundkey.Time(at)), At: at, Messages: int64(20 + at.YearDay()*at.Hour()%40)}
				all = append(all, h)
				byDay[at.YearDay()-1] += h.Messages
			}
		}
		s.write("a year of one employee", "365 days in 2 rows", func() { try(year.SetMany(ctx, yearKey, byDay)) })
		must(hours.BulkNonAtomic(ctx, each(all), nil))
		rows := hours.Query().Partition(sender(jones))
		ask(s, "a year by the day",
			list(tables.RangeQuery, func() (days []*dayCount) {
				for day, slot := range must(year.Read(ctx, yearKey)).Slots {
					if slot.Present {
						days = append(days, &dayCount{day, slot.Value})
					}
				}
				return days
			}).through(2),
			list(tables.PartitionScan, func() (days []*dayCount) {
				for _, h := range collect(rows.All(ctx)) { // in the order of time
					if day := h.At.YearDay() - 1; len(days) == 0 || days[len(days)-1].day != day {
						days = append(days, &dayCount{day: day})
					}
					days[len(days)-1].messages += h.Messages
				}
				return days
			}).through(len(all)))

		// A queue delivers a message at least once. AddOnce counts it once, since it stores its name with the count.
		worker := must(eventual.NewWorker(queue, map[string]eventual.Handler{"sent": func(ctx context.Context, m *eventual.Message) error {
			var name string
			if err := m.Decode(&name); err != nil {
				return err
			}
			_, err := day.AddOnce(ctx, dayKey, 9, 1, name)
			return err
		}}, &eventual.WorkerOptions{RetryDelay: func(int) time.Duration { return 0 }}))
		s.write("10 messages delivered twice", "each is counted once", func() {
			for n := range 20 {
				try(again(ctx, func() error { _, err := queue.Send(ctx, "sent", fmt.Sprint("message ", n/2), nil); return err }))
			}
			s.drain(ctx, queue, worker)
		})
		count := must(day.Read(ctx, dayKey)).Slots[9].Value
		s.check(count == 10, "%d messages were counted", count)
	}
}

// Claim is of the expenses of an employee.
type Claim struct {
	tables.Meta
	logtail.Entry
	Employee, Amount int
}

// claims has the newest first.
func claims(s *scene) func(context.Context) {
	const claimed, latest = 1200, 10 // more than an answer holds, and how many are asked for
	now := time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC)
	log := must(logtail.New(s.store.Table("Claims"), logtail.Schema[Claim]{
		Partition: func(c *Claim) string { return sender(c.Employee) },
		Prefix:    "claim",
		Now:       func() time.Time { return now },
	}))
	plain := must(patterns.NewRepository(s.store.Table("ClaimsPlain"), schemaOf("claim", func(c *Claim) tables.Key {
		return tables.Key{Partition: sender(c.Employee), Row: compoundkey.Join("claim", compoundkey.Time(c.LoggedAt), compoundkey.String(c.LogID))}
	})))
	return func(ctx context.Context) {
		var all []*Claim
		for n := range claimed {
			c := &Claim{Employee: jones, Amount: 10 + n*7%90}
			c.LoggedAt = now.AddDate(0, 0, 2*(n-claimed))
			try(log.Stamp(c))
			all = append(all, c)
		}
		s.write("claims imported", "1,200 claims of one employee", func() { load(ctx, log.Repository(), allFresh(all)) })
		load(ctx, plain, all)
		ask(s, "the ten latest claims",
			list(tables.RangeQuery, func() []*Claim { return must(log.Latest(ctx, sender(jones), latest)) }),
			query(ctx, plain.Query().Partition(sender(jones))).through(claimed).
				sorted(func(a, b *Claim) int { return b.LoggedAt.Compare(a.LoggedAt) }).top(latest))

		c := &Claim{Employee: jones, Amount: 80}
		try(log.Stamp(c))
		s.act("a claim appended", "it is the newest", func() { try(log.Append(ctx, fresh(c))) })
		s.act("the same claim once more", "it is there, and is not made again", func() { try(log.Append(ctx, fresh(c))) })
		newest := must(log.Latest(ctx, sender(jones), 2))
		s.check(newest[0].LogID == c.LogID && newest[1].LogID != c.LogID, "the newest claims are %s and %s", newest[0].LogID, newest[1].LogID)
	}
}

// Login is a request to log in.
type Login struct {
	tables.Meta
	Employee int
	At       time.Time
}

func openLogins(table *tables.Table) (*patterns.Repository[Login], error) {
	return patterns.NewRepository(table, schemaOf("at", func(l *Login) tables.Key {
		return tables.Key{Partition: sender(l.Employee), Row: compoundkey.Join("at", compoundkey.Time(l.At))}
	}))
}

// logins drops the tables of old weeks.
func logins(s *scene) func(context.Context) {
	const loginDays, keptDays, loggingIn = 90, 60, 20    // before today; of them, and the rest of a week; employees, once a day each
	now := time.Date(2014, 8, 22, 12, 0, 0, 0, time.UTC) // a Friday
	plain := must(openLogins(s.store.Table("LoginsPlain")))
	weeks := must(highvolumedelete.New(s.account, highvolumedelete.Schema[Login]{
		Name: plain.Table().Name()[:len("Contoso")+12] + "Logins", Unit: highvolumedelete.Week, RowOrder: highvolumedelete.OldestFirst,
		Time: func(l *Login) time.Time { return l.At },
		Open: openLogins,
		Now:  func() time.Time { return now },
	}))
	s.runTimeTables = func(ctx context.Context) ([]string, error) {
		names, err := weeks.List(ctx)
		return append(names, weeks.Control().Name()), err
	}
	return func(ctx context.Context) {
		first, end := now.AddDate(0, 0, -loginDays).Truncate(24*time.Hour), now.AddDate(0, 0, -5)
		byWeek := map[string][]*Login{}
		var all []*Login
		for day := first; day.Before(end); day = day.AddDate(0, 0, 1) {
			name := must(weeks.TableName(day))
			for _, e := range s.staff[:loggingIn] {
				l := &Login{Employee: e.ID, At: day.Add(8*time.Hour + time.Duration(e.ID)*time.Second)}
				byWeek[name], all = append(byWeek[name], l), append(all, l)
			}
		}
		s.write("logins imported", fmt.Sprintf("%s in %d tables, one a week", counted(len(all), "login"), len(byWeek)), func() {
			try(again(ctx, func() error { return weeks.Prepare(ctx, first, end) }))
			for _, week := range byWeek {
				load(ctx, must(weeks.Repository(week[0].At)), allFresh(week))
			}
		})
		load(ctx, plain, all)
		s.act("the first login of a week", "in a table that is made for it", func() {
			try(weeks.Insert(ctx, &Login{Employee: loggingIn + 1, At: now}))
		})
		from, to := time.Date(2014, 7, 1, 0, 0, 0, 0, time.UTC), time.Date(2014, 8, 1, 0, 0, 0, 0, time.UTC)
		hers := &highvolumedelete.ReadOptions[Login]{Partitions: []string{sender(loggingIn)}}
		ask(s, "her logins of July",
			list(tables.RangeQuery, func() []*Login { return collect(weeks.Between(ctx, from, to, hers)) }),
			query(ctx, plain.Query().Partition(sender(loggingIn)).Rows(between(from, to).Under("at"))))

		var dropped highvolumedelete.DropReport
		s.act("the old weeks dropped", "", func() { // without time of grace, since nobody writes meanwhile
			dropped = must(weeks.Drop(ctx, now.AddDate(0, 0, -keptDays), &highvolumedelete.DropOptions{UnsafeGrace: -1}))
		}).says("%s, all before %s", counted(len(dropped.Tables), "table"), dropped.Mark.Format(time.DateOnly))
		s.act("the same in the plain table, by hand", "a table scan, and transactions of 100 rows of a partition", func() {
			byPartition := map[int][]*Login{}
			for _, l := range collect(plain.Query().Where(tables.Lt("At", dropped.Mark)).AllowTableScan().All(ctx)) {
				byPartition[l.Employee] = append(byPartition[l.Employee], l)
			}
			for _, old := range byPartition {
				for some := range slices.Chunk(old, 100) {
					x := plain.Table().NewTransaction()
					for _, l := range some {
						plain.StageDelete(x, l)
					}
					must(x.Commit(ctx))
				}
			}
		})
		s.refused("a login of a dropped week", highvolumedelete.ErrLate, func() {
			try(weeks.Insert(ctx, &Login{Employee: jones, At: first.Add(9 * time.Hour)}))
		})
		var everybody []string
		for n := range loggingIn {
			everybody = append(everybody, sender(n+1))
		}
		kept := collect(weeks.Between(ctx, first, now, &highvolumedelete.ReadOptions[Login]{Partitions: everybody}))
		left := collect(plain.Query().AllowTableScan().All(ctx))
		s.check(len(kept) == len(left), "%d logins are left in the weeks, %d in the plain table", len(kept), len(left))
	}
}

// LogRow is a log record as a row of a table.
type LogRow struct {
	tables.Meta
	At     time.Time `json:"-"`
	Number int
	Server string
	Level  string
}

func (r *LogRow) row() string {
	return compoundkey.Join("log", compoundkey.Time(r.At), compoundkey.Int(r.Number, 8))
}

// logs looks for the errors of two minutes.
func logs(s *scene) func(context.Context) {
	const servers, minutes, aMinute = 3, 20, 60 // programs that log; from 15:00 on; records of all programs
	log := must(logdata.New(blobstorage.Open(s.store, "logs"), "intranet", nil))
	repository := func(name string, partition func(*LogRow) string) *patterns.Repository[LogRow] {
		return must(patterns.NewRepository(s.store.Table(name), schemaOf("log", func(r *LogRow) tables.Key {
			return tables.Key{Partition: partition(r), Row: r.row()}
		})))
	}
	byHour := repository("LogByHour", func(r *LogRow) string { return hourOf(r.At) }) // all writes go to one partition
	byServer := repository("LogByServer", func(r *LogRow) string { return r.Server }) // writes are spread, and a read asks all partitions
	return func(ctx context.Context) {
		begin := time.Date(2014, 8, 22, 15, 0, 0, 0, time.UTC)
		all := make([]*LogRow, minutes*aMinute)
		for n := range all {
			level := "info"
			if n%31 == 0 {
				level = "error"
			}
			all[n] = &LogRow{At: begin.Add(time.Duration(n) * time.Minute / aMinute), Number: n, Server: fmt.Sprintf("server_%d", n%servers), Level: level}
		}
		s.write("log records written to blobs", "1,200 records by 3 servers, sent in blocks", func() {
			for n := range servers { // each writes its own blobs. A record is in memory until it is sent with others
				w := must(log.NewWriter(&logdata.WriterOptions{Buffered: true, Interval: time.Minute}))
				for _, r := range all {
					if r.Number%servers == n {
						try(w.Write(ctx, logdata.Record{Time: r.At, Data: must(json.Marshal(r))}))
					}
				}
				try(w.Close(ctx))
			}
		})
		load(ctx, byHour, allFresh(all))
		load(ctx, byServer, allFresh(all))

		from, to := begin.Add(4*time.Minute), begin.Add(6*time.Minute)
		inBlobs := 0 // records, in those blobs that can have the time
		for _, blob := range collect(log.Blobs(ctx, from, to)) {
			inBlobs += int(blob.Records)
		}
		with := list("blobs by time", func() (found []*LogRow) {
			for _, record := range collect(log.Query(ctx, from, to, nil)) {
				r := &LogRow{At: record.Time}
				if try(json.Unmarshal(record.Data, r)); r.Level == "error" {
					found = append(found, r)
				}
			}
			return found
		}).through(inBlobs)
		failed := tables.Eq("Level", "error")
		ask(s, "errors of two minutes, rows by hour", with,
			query(ctx, byHour.Query().Partition(hourOf(from)).Rows(between(from, to).Under("log")).Where(failed)).through(2*aMinute))
		ask(s, "errors of two minutes, rows by server", with,
			query(ctx, byServer.Query().Where(tables.Ge("At", from), tables.Lt("At", to), failed).AllowTableScan()).through(len(all)).
				sorted(func(a, b *LogRow) int { return a.At.Compare(b.At) }))

		records := collect(log.Query(ctx, begin, begin.Add(time.Hour), nil))
		s.check(len(records) == len(all), "%d records of %d", len(records), len(all))
		for i, record := range records {
			s.check(record.Time.Equal(all[i].At), "record %d is of %v", i, record.Time)
		}
	}
}
