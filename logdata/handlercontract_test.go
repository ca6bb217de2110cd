package logdata_test

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

type (
	panicking          struct{}
	panickingMarshaler struct{}
)

func (panicking) LogValue() slog.Value { panic("no value") }

func (panickingMarshaler) MarshalJSON() ([]byte, error) { panic("no JSON") }

// TestHandlerContract: what slog.Handler asks for of empty groups, and values that panic, which cost their record nothing else.
func TestHandlerContract(t *testing.T) {
	l := newLog(t, storagetest.Simulator(t, nil), nil)
	w := newWriter(t, l, &logdata.WriterOptions{Buffered: true})
	h := w.Handler(nil)
	slog.New(h.WithGroup("").WithAttrs(nil)).Info("no group", "a", 1)
	slog.New(h.WithGroup("g").WithGroup("").WithAttrs([]slog.Attr{slog.Int("b", 2)})).Info("a group", "a", 1)
	slog.New(h.WithGroup("g")).Info("a group without attributes")
	slog.New(h).With("p", panicking{}).Info("with", "a", 1)
	slog.New(h).Info("value", "p", panicking{}, "m", panickingMarshaler{}, "a", 1)
	slog.New(h).With("m", panickingMarshaler{}).Info("marshaler")
	assert.Check(t, w.Close(t.Context()))
	var got []string
	for _, text := range readAll(t, l) {
		_, rest, _ := strings.Cut(text, `"msg":`)
		got = append(got, rest)
	}
	want := []string{`"no group","a":1}`, `"a group","g":{"b":2,"a":1}}`, `"a group without attributes"}`}
	assert.Slices(t, got[:3], want)
	if len(got) != 6 || !strings.Contains(got[3], "panicked") || !strings.Contains(got[5], "PANIC: no JSON") || !strings.HasSuffix(got[3], `,"a":1}`) || !strings.HasSuffix(got[4], `,"a":1}`) {
		t.Errorf("values that panic: %q", got[3:])
	}
}
