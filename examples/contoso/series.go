package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

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

func between(from, to time.Time) compoundkey.Span {
	return compoundkey.Between(compoundkey.Time(from), compoundkey.Time(to))
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

// messages counts what an employee sends by the hour and by the day, each series in an entity. Guide: "Data series pattern".
func messages() scenario {
	return scenario{
		title: "Messages by the hour and by the day",
		guide: "Data series pattern",
		plain: "an entity an hour",
		shows: []show{{"Data series", "a year by the day", "", "a message that comes twice counts once"}},
		open: func(s *scene) func(context.Context) {
			series := s.store.Table("Series")
			day := must(dataseries.NewCounter[int64](series, "Hour_", 24, nil)) // one row
			year := must(dataseries.New[int64](series, "Day_", 365, &dataseries.Options{SlotsPerRow: 200}))
			hours := must(tables.RowsOf[Hour](s.store.Table("Hours")))
			queue := must(s.store.Queue("messages", &eventual.QueueOptions{VisibilityTimeout: chaosVisibility}))
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
				s.write("a year of one employee", "365 days in 2 rows", func() error { return year.SetMany(ctx, yearKey, byDay) })
				must(hours.BulkNonAtomic(ctx, each(all), nil))
				rows := hours.Query().Partition(sender(jones))
				ask(ctx, s, "a year by the day",
					sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*dayCount, error] {
						values, err := year.Read(ctx, yearKey)
						return daysOf(values, err)
					}).through(2),
					sequence(tables.PartitionScan, func(ctx context.Context) iter.Seq2[*dayCount, error] { return addUp(rows.All(ctx)) }).through(len(all)))

				// A queue delivers a message at least once. AddOnce counts it once, since it stores its name with the count.
				worker := must(eventual.NewWorker(queue, map[string]eventual.Handler{"sent": func(ctx context.Context, m *eventual.Message) error {
					var name string
					if err := m.Decode(&name); err != nil {
						return err
					}
					_, err := day.AddOnce(ctx, dayKey, 9, 1, name)
					return err
				}}, &eventual.WorkerOptions{RetryDelay: func(int) time.Duration { return 0 }}))
				s.write("10 messages delivered twice", "each is counted once", func() error {
					for n := range 20 {
						if err := again(ctx, func() error { _, err := queue.Send(ctx, "sent", fmt.Sprint("message ", n/2), nil); return err }); err != nil {
							return err
						}
					}
					return s.drain(ctx, queue, worker)
				})
				count := must(day.Read(ctx, dayKey)).Slots[9].Value
				s.check(count == 10, "%d messages were counted", count)
			}
		},
	}
}

// daysOf yields the days of a series that have a value.
func daysOf(values *dataseries.Values[int64], err error) iter.Seq2[*dayCount, error] {
	return func(yield func(*dayCount, error) bool) {
		if err != nil {
			yield(nil, err)
			return
		}
		for day, slot := range values.Slots {
			if slot.Present && !yield(&dayCount{day, slot.Value}, nil) {
				return
			}
		}
	}
}

// addUp makes days of hours, which come in order.
func addUp(hours iter.Seq2[*Hour, error]) iter.Seq2[*dayCount, error] {
	all, err := collect(hours)
	if err != nil {
		return func(yield func(*dayCount, error) bool) { yield(nil, err) }
	}
	var days []*dayCount
	for _, h := range all {
		if day := h.At.YearDay() - 1; len(days) == 0 || days[len(days)-1].day != day {
			days = append(days, &dayCount{day: day})
		}
		days[len(days)-1].messages += h.Messages
	}
	return each(days)
}

// Claim is of the expenses of an employee.
type Claim struct {
	tables.Meta
	logtail.Entry
	Employee, Amount int
}

// claims has the newest first. Guide: "Log tail pattern".
func claims() scenario {
	const claimed, latest = 1200, 10 // more than an answer holds, and how many are asked for
	return scenario{
		title: "The ten latest expense claims",
		guide: "Log tail pattern",
		plain: "the same rows, oldest first",
		shows: []show{{"Log tail", "the ten latest claims", "", "the newest first, in one request"}},
		open: func(s *scene) func(context.Context) {
			now := time.Date(2014, 8, 22, 0, 50, 32, 0, time.UTC)
			log := must(logtail.New(s.store.Table("Claims"), logtail.Schema[Claim]{
				Partition: func(c *Claim) string { return sender(c.Employee) },
				Prefix:    "claim",
				Now:       func() time.Time { return now },
			}))
			plain := must(patterns.NewRepository(s.store.Table("ClaimsPlain"), patterns.Schema[Claim]{
				Key: func(c *Claim) tables.Key {
					return tables.Key{Partition: sender(c.Employee), Row: compoundkey.Join("claim", compoundkey.Time(c.LoggedAt), compoundkey.String(c.LogID))}
				},
				Rows: compoundkey.Starting("claim"),
			}))
			return func(ctx context.Context) {
				var all []*Claim
				for n := range claimed {
					c := &Claim{Employee: jones, Amount: 10 + n*7%90}
					c.LoggedAt = now.AddDate(0, 0, 2*(n-claimed))
					try(log.Stamp(c))
					all = append(all, c)
				}
				s.write("claims imported", "1,200 claims of one employee", func() error {
					_, err := log.Repository().BulkNonAtomic(ctx, each(allFresh(all)), nil)
					return err
				})
				importing(ctx, plain, all)
				ask(ctx, s, "the ten latest claims",
					sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*Claim, error] {
						newest, err := log.Latest(ctx, sender(jones), latest)
						if err != nil {
							return func(yield func(*Claim, error) bool) { yield(nil, err) }
						}
						return each(newest)
					}),
					query(plain.Query().Partition(sender(jones))).through(claimed).top(latest).
						sorted(func(a, b *Claim) int { return b.LoggedAt.Compare(a.LoggedAt) }))

				c := &Claim{Employee: jones, Amount: 80}
				try(log.Stamp(c))
				s.act("a claim appended", "it is the newest", func() error { return log.Append(ctx, fresh(c)) })
				s.act("the same claim once more", "it is there, and is not made again", func() error { return log.Append(ctx, fresh(c)) })
				newest := must(log.Latest(ctx, sender(jones), 2))
				s.check(newest[0].LogID == c.LogID && newest[1].LogID != c.LogID, "the newest claims are %s and %s", newest[0].LogID, newest[1].LogID)
			}
		},
	}
}

// Login is a request to log in.
type Login struct {
	tables.Meta
	Employee int
	At       time.Time
}

func openLogins(table *tables.Table) (*patterns.Repository[Login], error) {
	return patterns.NewRepository(table, patterns.Schema[Login]{
		Key: func(l *Login) tables.Key {
			return tables.Key{Partition: sender(l.Employee), Row: compoundkey.Join("at", compoundkey.Time(l.At))}
		},
		Rows: compoundkey.Starting("at"),
	})
}

// deleteOld finds old logins in one table for all days, and deletes them: a transaction has up to 100 rows of a partition.
func deleteOld(ctx context.Context, plain *patterns.Repository[Login], before time.Time) error {
	old, err := collect(plain.Query().Where(tables.Lt("At", before)).AllowTableScan().All(ctx))
	x := plain.Table().NewTransaction()
	for i, l := range old {
		plain.StageDelete(x, l)
		if last := i == len(old)-1; err == nil && (last || x.Len() == 100 || old[i+1].Employee != l.Employee) {
			_, err = x.Commit(ctx)
			x = plain.Table().NewTransaction()
		}
	}
	return err
}

// logins go by the table when they are old. Guide: "High volume delete pattern".
func logins() scenario {
	const loginDays, keptDays, loggingIn = 90, 60, 20 // before today; of them, and the rest of a week; employees, once a day each
	return scenario{
		title: "Login requests of 90 days, of which 60 are kept",
		guide: "High volume delete pattern",
		plain: "one table for all days",
		shows: []show{{"High volume delete", "the old weeks dropped", "the same in the plain table, by hand", "old data goes by the table"}},
		open: func(s *scene) func(context.Context) {
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
				first := now.AddDate(0, 0, -loginDays).Truncate(24 * time.Hour)
				byWeek := map[string][]*Login{}
				var all []*Login
				for day := first; day.Before(now.AddDate(0, 0, -5)); day = day.AddDate(0, 0, 1) {
					name := must(weeks.TableName(day))
					for _, e := range s.staff[:loggingIn] {
						l := &Login{Employee: e.ID, At: day.Add(8*time.Hour + time.Duration(e.ID)*time.Second)}
						byWeek[name], all = append(byWeek[name], l), append(all, l)
					}
				}
				s.write("logins imported", fmt.Sprintf("%s in %d tables, one a week", counted(len(all), "login"), len(byWeek)), func() error {
					if err := again(ctx, func() error { return weeks.Prepare(ctx, first, now.AddDate(0, 0, -5)) }); err != nil {
						return err
					}
					for _, week := range byWeek {
						if _, err := must(weeks.Repository(week[0].At)).BulkNonAtomic(ctx, each(allFresh(week)), nil); err != nil {
							return err
						}
					}
					return nil
				})
				importing(ctx, plain, all)
				s.act("the first login of a week", "in a table that is made for it", func() error {
					return weeks.Insert(ctx, &Login{Employee: loggingIn + 1, At: now})
				})
				from, to := time.Date(2014, 7, 1, 0, 0, 0, 0, time.UTC), time.Date(2014, 8, 1, 0, 0, 0, 0, time.UTC)
				ask(ctx, s, "her logins of July",
					sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*Login, error] {
						return weeks.Between(ctx, from, to, &highvolumedelete.ReadOptions[Login]{Partitions: []string{sender(loggingIn)}})
					}),
					query(plain.Query().Partition(sender(loggingIn)).Rows(between(from, to).Under("at"))))

				var dropped highvolumedelete.DropReport
				s.act("the old weeks dropped", "", func() (err error) { // without time of grace, since nobody writes meanwhile
					dropped, err = weeks.Drop(ctx, now.AddDate(0, 0, -keptDays), &highvolumedelete.DropOptions{UnsafeGrace: -1})
					return err
				}).says("%s, all before %s", counted(len(dropped.Tables), "table"), dropped.Mark.Format(time.DateOnly))
				s.act("the same in the plain table, by hand", "a table scan, and transactions of 100 rows of a partition", func() error {
					return deleteOld(ctx, plain, dropped.Mark)
				})
				s.refused("a login of a dropped week", highvolumedelete.ErrLate, func() error {
					return weeks.Insert(ctx, &Login{Employee: jones, At: first.Add(9 * time.Hour)})
				})
				var everybody []string
				for n := range loggingIn {
					everybody = append(everybody, sender(n+1))
				}
				kept := must(collect(weeks.Between(ctx, first, now, &highvolumedelete.ReadOptions[Login]{Partitions: everybody})))
				left := must(collect(plain.Query().AllowTableScan().All(ctx)))
				s.check(len(kept) == len(left), "%d logins are left in the weeks, %d in the plain table", len(kept), len(left))
			}
		},
	}
}

// LogRow is a log record as a row of a table.
type LogRow struct {
	tables.Meta `json:"-"`
	At          time.Time `json:"-"`
	Number      int
	Server      string
	Level       string
}

func (r *LogRow) row() string {
	return compoundkey.Join("log", compoundkey.Time(r.At), compoundkey.Int(r.Number, 8))
}

// logs looks for the errors of two minutes. Guide: "Log data anti-pattern".
func logs() scenario {
	const servers, minutes, aMinute = 3, 20, 60 // programs that log; from 15:00 on; records of all programs
	return scenario{
		title: "Errors between 15:04 and 15:06",
		guide: "Log data anti-pattern",
		plain: "log records as rows of a table",
		shows: []show{{"Log data anti-pattern", "errors of two minutes, rows by server", "", "logs are found by time, in blobs"}},
		open: func(s *scene) func(context.Context) {
			log := must(logdata.New(s.store.Container("logs"), "intranet", nil))
			repository := func(name string, partition func(*LogRow) string) *patterns.Repository[LogRow] {
				return must(patterns.NewRepository(s.store.Table(name), patterns.Schema[LogRow]{
					Key: func(r *LogRow) tables.Key { return tables.Key{Partition: partition(r), Row: r.row()} }, Rows: compoundkey.Starting("log"),
				}))
			}
			byHour := repository("LogByHour", func(r *LogRow) string { return hourOf(r.At) }) // one partition has all that comes
			byServer := repository("LogByServer", func(r *LogRow) string { return r.Server }) // none has, and every one must be asked
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
				s.write("log records written to blobs", "1,200 records by 3 servers, sent in blocks", func() error { return writeLog(ctx, log, all, servers) })
				importing(ctx, byHour, allFresh(all))
				importing(ctx, byServer, allFresh(all))

				from, to := begin.Add(4*time.Minute), begin.Add(6*time.Minute)
				inBlobs := 0 // records, in those blobs that can have the time
				for blob, err := range log.Blobs(ctx, from, to) {
					try(err)
					inBlobs += int(blob.Records)
				}
				with := sequence(blobsByTime("blobs by time"), func(ctx context.Context) iter.Seq2[*LogRow, error] {
					return errorsOf(log.Query(ctx, from, to, nil))
				}).through(inBlobs)
				failed := tables.Eq("Level", "error")
				ask(ctx, s, "errors of two minutes, rows by hour", with,
					query(byHour.Query().Partition(hourOf(from)).Rows(between(from, to).Under("log")).Where(failed)).through(2*aMinute))
				ask(ctx, s, "errors of two minutes, rows by server", with,
					query(byServer.Query().Where(tables.Ge("At", from), tables.Lt("At", to), failed).AllowTableScan()).through(len(all)).
						sorted(func(a, b *LogRow) int { return a.At.Compare(b.At) }))

				next := 0
				for record, err := range log.Query(ctx, begin, begin.Add(time.Hour), nil) {
					try(err)
					s.check(next < len(all) && record.Time.Equal(all[next].At), "record %d is of %v", next, record.Time)
					next++
				}
				s.check(next == len(all), "%d records of %d", next, len(all))
			}
		},
	}
}

// blobsByTime names what is read in place of a table.
type blobsByTime string

func (b blobsByTime) String() string { return string(b) }

// writeLog has each server write its own blobs. A record is in memory until it is sent with others.
func writeLog(ctx context.Context, log *logdata.Log, all []*LogRow, servers int) (failed error) {
	for n := range servers {
		w, err := log.NewWriter(&logdata.WriterOptions{Buffered: true, Interval: time.Minute})
		if err != nil {
			return err
		}
		for _, r := range all {
			if r.Number%servers == n {
				data, err := json.Marshal(r)
				failed = errors.Join(failed, err, w.Write(ctx, logdata.Record{Time: r.At, Data: data}))
			}
		}
		failed = errors.Join(failed, w.Close(ctx))
	}
	return failed
}

// errorsOf yields the records of errors.
func errorsOf(records iter.Seq2[logdata.Record, error]) iter.Seq2[*LogRow, error] {
	return func(yield func(*LogRow, error) bool) {
		for record, err := range records {
			r := &LogRow{At: record.Time}
			if err == nil {
				err = json.Unmarshal(record.Data, r)
			}
			if err == nil && r.Level != "error" {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}
