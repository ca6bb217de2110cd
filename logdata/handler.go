package logdata

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"slices"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Handler returns a handler for log/slog. Each record is stored under the time that it has, or that it is handled at if it
// has none; its Data are JSON, as slog.NewJSONHandler writes it, without the line feed at its end. Values that log while they
// are formatted are no problem. Of attributes that were added by With, a LogValuer is asked once, when it is added; what else
// they point at is formatted again for each record.
//
// As slog asks for, a context that ends does not stop a record. Of a writer that is not buffered, a record is stored when
// the call returns; slog's own functions drop the error if it is not. A buffered writer's flush that has failed in the
// background is the error of the next record, which is in memory nevertheless.
func (w *Writer) Handler(o *slog.HandlerOptions) slog.Handler {
	h := &handler{writer: w}
	if o != nil {
		h.options = *o
	}
	return h
}

// handler formats each record in a buffer of its own, by a slog.JSONHandler that is derived again: values are formatted by their
// own methods, and those may log. A buffer that is shared under a lock would stop such a logger for good.
type handler struct {
	writer  *Writer
	options slog.HandlerOptions
	derive  []func(slog.Handler) slog.Handler // what WithAttrs and WithGroup have added
}

func (h *handler) Enabled(ctx context.Context, level slog.Level) bool {
	return slog.NewJSONHandler(io.Discard, &h.options).Enabled(ctx, level)
}

func (h *handler) WithAttrs(attrs []slog.Attr) slog.Handler {
	if len(attrs) == 0 {
		return h
	}
	attrs = resolved(attrs)
	return h.derived(func(json slog.Handler) slog.Handler { return json.WithAttrs(attrs) })
}

func (h *handler) WithGroup(name string) slog.Handler {
	if name == "" { // of which slog.JSONHandler makes a group all the same
		return h
	}
	return h.derived(func(json slog.Handler) slog.Handler { return json.WithGroup(name) })
}

func (h *handler) derived(step func(slog.Handler) slog.Handler) *handler {
	next := *h
	next.derive = append(slices.Clip(h.derive), step)
	return &next
}

// resolved asks attributes for their values once, as the JSON handler does when it is given them.
func resolved(attrs []slog.Attr) []slog.Attr {
	all := make([]slog.Attr, len(attrs))
	for i, a := range attrs {
		all[i] = slog.Attr{Key: a.Key, Value: a.Value.Resolve()}
		if all[i].Value.Kind() == slog.KindGroup {
			all[i].Value = slog.GroupValue(resolved(all[i].Value.Group())...)
		}
	}
	return all
}

func (h *handler) Handle(ctx context.Context, r slog.Record) error {
	ctx = context.WithoutCancel(ctx)
	var text bytes.Buffer
	var json slog.Handler = slog.NewJSONHandler(&text, &h.options)
	for _, step := range h.derive {
		json = step(json)
	}
	if err := json.Handle(ctx, r); err != nil {
		return err
	}
	_, err := h.writer.insist(ctx, Record{Time: r.Time, Data: withoutLineFeed(text.Bytes())})
	return err
}

// insist is Write for callers that do not look at errors: a buffered record that was refused for the sake of others is
// written once more. The error of those others is returned all the same, with whether the record itself was accepted.
func (w *Writer) insist(ctx context.Context, r Record) (accepted bool, err error) {
	err = w.Write(ctx, r)
	if err == nil || !w.options.Buffered || errors.Is(err, tables.ErrTooLarge) || errors.Is(err, tables.ErrInvalid) || ctx.Err() != nil {
		return err == nil, err
	}
	again := w.Write(ctx, r)
	return again == nil, errors.Join(err, again)
}

// Lines returns an io.Writer, such as log.New asks for: each call of Write is one record of the time of the call, without
// the line feed at its end; others stay within the record. ctx is that of all calls. Its errors are those of Writer.Write.
// One of a flush in the background comes with the full count: the record itself is in memory.
func (w *Writer) Lines(ctx context.Context) io.Writer { return lines{ctx, w} }

type lines struct {
	ctx    context.Context
	writer *Writer
}

func (l lines) Write(p []byte) (int, error) {
	accepted, err := l.writer.insist(l.ctx, Record{Data: withoutLineFeed(p)})
	if !accepted {
		return 0, err
	}
	return len(p), err
}

func withoutLineFeed(text []byte) []byte { return bytes.TrimSuffix(text, []byte{'\n'}) }
