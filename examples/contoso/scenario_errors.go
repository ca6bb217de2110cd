package main

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	servers    = 3  // programs that log
	logMinutes = 20 // from 15:00 on
	aMinute    = 60 // records, of all programs
)

// logErrors looks for what went wrong in two minutes.
func logErrors() scenario {
	return scenario{
		title: "Errors between 15:04 and 15:06",
		guide: "Log data anti-pattern",
		shows: []show{
			{"Log data anti-pattern", "errors of two minutes, rows by server", "", "logs are found by time, in blobs"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			l, err := c.openServerLog(ctx)
			if err != nil {
				return err
			}
			s.Plain = "log records as rows of a table"
			return steps(ctx, s, l.write, l.store, l.askForErrors, l.blobs)
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
	Text        string
}

// logRecord is what two LogRows must have in common to be the same.
type logRecord struct {
	at                  int64
	number              int
	server, level, text string
}

func (r *LogRow) record() logRecord {
	return logRecord{r.At.UnixNano(), r.Number, r.Server, r.Level, r.Text}
}

func (r *LogRow) row() string {
	return compoundkey.Join("log", compoundkey.Time(r.At), compoundkey.Int(r.Number, 8))
}

// wrong reports whether it is an error or worse.
func (r *LogRow) wrong() bool { return r.Level == "critical" || r.Level == "error" }

func newLogRows() []*LogRow {
	rows := make([]*LogRow, logMinutes*aMinute)
	for n := range rows {
		level := "info"
		switch {
		case n%97 == 0:
			level = "critical"
		case n%31 == 0:
			level = "error"
		}
		rows[n] = &LogRow{At: threePM().Add(time.Duration(n) * time.Minute / aMinute), Number: n, Server: fmt.Sprintf("server_%d", n%servers),
			Level: level, Text: fmt.Sprintf("Request %d\nof the intranet", n)}
	}
	return rows
}

func threePM() time.Time { return time.Date(2014, 8, 22, 15, 0, 0, 0, time.UTC) }

// serverLog is the same records in blobs, and in the guide's two tables.
type serverLog struct {
	c        *company
	rows     []*LogRow // in their order
	log      *logdata.Log
	byHour   *patterns.Repository[LogRow] // one partition has all that comes
	byServer *patterns.Repository[LogRow] // none has, and every one must be asked
}

func (c *company) openServerLog(ctx context.Context) (*serverLog, error) {
	l := &serverLog{c: c, rows: newLogRows()}
	container, err := c.container(ctx, "logs")
	if err != nil {
		return nil, err
	}
	if l.log, err = logdata.New(container, "intranet", nil); err != nil {
		return nil, err
	}
	for _, x := range []struct {
		repo      **patterns.Repository[LogRow]
		name      string
		partition func(*LogRow) string
	}{
		{&l.byHour, "LogByHour", func(r *LogRow) string { return hourOf(r.At) }},
		{&l.byServer, "LogByServer", func(r *LogRow) string { return r.Server }},
	} {
		table, err := c.table(ctx, x.name)
		if err != nil {
			return nil, err
		}
		*x.repo, err = patterns.NewRepository(table, patterns.Schema[LogRow]{
			Key:  func(r *LogRow) tables.Key { return tables.Key{Partition: x.partition(r), Row: r.row()} },
			Rows: compoundkey.Starting("log"),
		})
		if err != nil {
			return nil, err
		}
	}
	return l, nil
}

// write has each server write its own blobs. A record is in memory until it is sent with others.
func (l *serverLog) write(ctx context.Context, s *section) error {
	return l.c.exposed(s, "log records written to blobs", func() (string, error) {
		for n := range servers {
			w, err := l.log.NewWriter(&logdata.WriterOptions{Buffered: true, Interval: time.Minute})
			if err != nil {
				return "", err
			}
			for _, r := range l.rows {
				if r.Number%servers != n {
					continue
				}
				data, err := json.Marshal(r)
				if err != nil {
					return "", err
				}
				if err := w.Write(ctx, logdata.Record{Time: r.At, Data: data}); err != nil {
					return "", err
				}
			}
			if err := w.Close(ctx); err != nil {
				return "", err
			}
		}
		return fmt.Sprintf("%s by %d servers, sent in blocks", counted(len(l.rows), "record"), servers), nil
	})
}

// store writes the same records as rows.
func (l *serverLog) store(ctx context.Context, s *section) error {
	for _, x := range []struct {
		what string
		repo *patterns.Repository[LogRow]
	}{{"the same as rows by the hour", l.byHour}, {"the same as rows by the server", l.byServer}} {
		if err := l.c.act(s, x.what, func() (string, error) {
			again := make([]*LogRow, len(l.rows))
			for i, r := range l.rows {
				twin := *r
				again[i] = &twin
			}
			done, err := x.repo.BulkNonAtomic(ctx, each(again), nil)
			return fmt.Sprintf("%s in %s", counted(int(done.Rows), "row"), counted(int(done.Transactions), "transaction")), err
		}); err != nil {
			return err
		}
	}
	return nil
}

// inBlobs yields the errors of a time. Which blobs can hold them, their names and metadata tell.
func (l *serverLog) inBlobs(ctx context.Context, from, to time.Time) iter.Seq2[*LogRow, error] {
	return func(yield func(*LogRow, error) bool) {
		for record, err := range l.log.Query(ctx, from, to, nil) {
			r := &LogRow{At: record.Time}
			if err == nil {
				err = json.Unmarshal(record.Data, r)
			}
			if err == nil && !r.wrong() {
				continue
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// askForErrors asks for the guide's two minutes, against both of its tables.
func (l *serverLog) askForErrors(ctx context.Context, s *section) error {
	from, to := threePM().Add(4*time.Minute), threePM().Add(6*time.Minute)
	with := wayTo[LogRow]{how: "blobs by time", ask: func(ctx context.Context) iter.Seq2[*LogRow, error] { return l.inBlobs(ctx, from, to) }}
	for blob, err := range l.log.Blobs(ctx, from, to) {
		if err != nil {
			return err
		}
		with.searched += int(blob.Records)
	}
	wrong := tables.Or(tables.Eq("Level", "critical"), tables.Eq("Level", "error"))
	hour, err := answering(l.byHour.Query().Partition(hourOf(from)).Rows(between(from, to).Under("log")).Where(wrong))
	if err != nil {
		return err
	}
	hour.searched = 2 * aMinute
	server, err := answering(l.byServer.Query().Where(tables.Ge("At", from), tables.Lt("At", to), wrong).AllowTableScan())
	if err != nil {
		return err
	}
	server.searched, server.sort = len(l.rows), func(a, b *LogRow) int { return a.At.Compare(b.At) }
	for _, x := range []struct {
		text    string
		without wayTo[LogRow]
	}{{"errors of two minutes, rows by hour", hour}, {"errors of two minutes, rows by server", server}} {
		if err := ask(ctx, l.c, s, asked[LogRow, logRecord]{text: x.text, with: with, without: x.without, record: (*LogRow).record}); err != nil {
			return err
		}
	}
	return nil
}

// blobs shows what there is: all records are in it, once.
func (l *serverLog) blobs(ctx context.Context, s *section) error {
	return l.c.act(s, "all records read back", func() (string, error) {
		next := 0
		for record, err := range l.log.Query(ctx, threePM(), threePM().Add(time.Hour), nil) {
			if err != nil {
				return "", err
			}
			r := LogRow{At: record.Time}
			if err := json.Unmarshal(record.Data, &r); err != nil {
				return "", err
			}
			if next == len(l.rows) || r.record() != l.rows[next].record() {
				return "", fmt.Errorf("record %d is not the one that came then", next+1)
			}
			next++
		}
		if next != len(l.rows) {
			return "", fmt.Errorf("%d records of %d", next, len(l.rows))
		}
		s.Text = append(s.Text, "The blobs:")
		for blob, err := range l.log.Blobs(ctx, threePM(), threePM().Add(time.Hour)) {
			if err != nil {
				return "", err
			}
			s.Text = append(s.Text, fmt.Sprintf("  %s  %s  from %s to %s", blob.Name, counted(int(blob.Records), "record"),
				blob.First.Format(time.TimeOnly), blob.Last.Format(time.TimeOnly)))
		}
		return counted(next, "record") + ", each once and in order", nil
	})
}
