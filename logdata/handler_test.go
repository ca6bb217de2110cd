package logdata_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/slogtest"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// readAll returns the texts of all times, in the order in which they were written.
func readAll(t testing.TB, l *logdata.Log) []string {
	t.Helper()
	return assert.Must[[]string](t)(read(t.Context(), l, time.Time{}, time.Now().Add(24*time.Hour)))
}

// TestHandler holds the handler to what log/slog asks for, on blobs.
func TestHandler(t *testing.T) {
	s := storagetest.Open(t)
	for name, o := range modes() {
		t.Run(name, func(t *testing.T) {
			var l *logdata.Log
			var w *logdata.Writer
			slogtest.Run(t, func(t *testing.T) slog.Handler {
				l = newLog(t, s, nil)
				w = newWriter(t, l, o)
				return w.Handler(nil)
			}, func(t *testing.T) map[string]any {
				assert.Check(t, w.Flush(t.Context()))
				all := readAll(t, l)
				assert.Len(assert.Fatal(t), all, 1, "records")
				var m map[string]any
				assert.Check(t, json.Unmarshal([]byte(all[0]), &m))
				return m
			})
		})
	}
}

// TestHandlerOptions: levels, groups and many goroutines; a context that has ended stops nothing.
func TestHandlerOptions(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
	logger := slog.New(w.Handler(&slog.HandlerOptions{Level: slog.LevelWarn})).With("app", "hr")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	logger.InfoContext(ended, "not logged")
	var all sync.WaitGroup
	for n := range 10 {
		all.Go(func() { logger.WithGroup("g").ErrorContext(ended, "two\nlines", "n", n) })
	}
	all.Wait()
	assert.Check(t, w.Close(t.Context()))
	var got []string
	for _, text := range readAll(t, l) {
		var m struct {
			Level, Msg, App string
			G               struct{ N int }
		}
		assert.Check(t, json.Unmarshal([]byte(text), &m))
		got = append(got, fmt.Sprintf("%s %q %s %d", m.Level, m.Msg, m.App, m.G.N))
	}
	var want []string
	for n := range 10 {
		want = append(want, fmt.Sprintf(`ERROR "two\nlines" hr %d`, n))
	}
	slices.Sort(got)
	wantTexts(t, got, want)
}

type loggingValuer struct{ log *slog.Logger }

func (v loggingValuer) LogValue() slog.Value {
	v.log.Debug("inner")
	return slog.StringValue("x")
}

type loggingMarshaler struct{ log *slog.Logger }

func (m loggingMarshaler) MarshalJSON() ([]byte, error) {
	m.log.Debug("inner")
	return []byte(`"x"`), nil
}

// TestHandlerOfValuesThatLog: a value may log while it is formatted, through the same handler, as with slog's own.
func TestHandlerOfValuesThatLog(t *testing.T) {
	for name, value := range map[string]func(*slog.Logger) any{
		"LogValuer": func(l *slog.Logger) any { return loggingValuer{l} },
		"Marshaler": func(l *slog.Logger) any { return loggingMarshaler{l} },
	} {
		t.Run(name, func(t *testing.T) {
			l := newLog(t, storagetest.Simulator(t, nil), nil)
			w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
			inner := slog.New(w.Handler(&slog.HandlerOptions{Level: slog.LevelDebug}))
			inner.With("n", 1).WithGroup("g").Info("outer", "v", value(inner))
			inner.With("v", value(inner)).Info("with")
			assert.Check(t, w.Close(t.Context()))
			var got []string
			for _, text := range readAll(t, l) {
				_, rest, _ := strings.Cut(text, `"msg":`)
				got = append(got, rest)
			}
			slices.Sort(got)
			wantTexts(t, got, []string{`"inner"}`, `"inner"}`, `"outer","n":1,"g":{"v":"x"}}`, `"with","v":"x"}`})
		})
	}
}

// TestHandlerAsksOnce: a LogValuer of With is asked when it is added, in groups too, and not for each record.
func TestHandlerAsksOnce(t *testing.T) {
	l := newLog(t, storagetest.Simulator(t, nil), nil)
	w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
	asked := 0
	c := counting{&asked}
	logger := slog.New(w.Handler(nil)).With("a", c, slog.Group("g", "b", c))
	for range 3 {
		logger.Info("x")
	}
	assert.Check(t, w.Close(t.Context()))
	for _, text := range readAll(t, l) {
		if !strings.HasSuffix(text, `"a":1,"g":{"b":2}}`) {
			t.Error(text)
		}
	}
	assert.Equal(t, asked, 2, "times asked")
}

type counting struct{ asked *int }

func (c counting) LogValue() slog.Value {
	*c.asked++
	return slog.IntValue(*c.asked)
}

// TestLines: each call of log.Logger is a record.
func TestLines(t *testing.T) {
	l := newLog(t, storagetest.Open(t), nil)
	w := newWriter(t, l, nil)
	logger := log.New(w.Lines(t.Context()), "hr: ", 0)
	logger.Print("one")
	logger.Print("two\nlines\n")
	n, err := w.Lines(t.Context()).Write([]byte(strings.Repeat("x", 5<<20)))
	if n != 0 || err == nil {
		t.Errorf("a line that is too large: %d, %v", n, err)
	}
	wantTexts(t, readAll(t, l), []string{"hr: one", "hr: two\nlines"})
}

// TestUnreadErrors: if a flush in the background failed, the next call reports the error, and stores its own record
// nevertheless.
func TestUnreadErrors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		down := storagetest.NewToggle(storagetest.On(storagetest.AppendBlock, storagetest.Always(storagetest.NotSent)))
		faulty, _ := storagetest.Simulator(t, nil).WithRetries(0).Faulty(down)
		l := newLog(t, faulty, nil)
		w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
		down.Set(true)
		for _, text := range []string{"one", "two", "three"} {
			n, err := w.Lines(t.Context()).Write([]byte(text))
			if n != len(text) || (err != nil) != (text != "one") {
				t.Errorf("%s: %d, %v", text, n, err)
			}
			time.Sleep(3 * time.Second)
			synctest.Wait()
		}
		down.Set(false)
		assert.Check(t, w.Close(t.Context()))
		wantTexts(t, readAll(t, l), []string{"one", "two", "three"})
	})
}
