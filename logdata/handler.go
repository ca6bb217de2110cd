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

// Handler returns a handler for log/slog. It stores each record under its time or, if that is zero, the current time, as JSON of
// slog.NewJSONHandler without the final line feed. Values may log while they are formatted. A LogValuer added by With is resolved once; values
// behind pointers are formatted again for each record.
//
// As slog requires, an ended context does not stop a record. With an unbuffered Writer the record is durable when the call returns; slog's
// package-level functions discard the error if it is not. With a buffered Writer, a call can return the error of a failed background flush; its own
// record is nevertheless in memory if there is room.
func (w *Writer) Handler(options *slog.HandlerOptions) slog.Handler {
	h := &handler{writer: w}
	if options != nil {
		h.options = *options
	}
	return h
}

// handler makes a slog.JSONHandler for each record: a value's formatting method may itself log, and would deadlock if the buffer were shared under
// a lock.
type handler struct {
	writer  *Writer
	options slog.HandlerOptions
	derive  []func(slog.Handler) slog.Handler // of WithAttrs and WithGroup
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
	if name == "" { // slog.JSONHandler would open a group without a name
		return h
	}
	return h.derived(func(json slog.Handler) slog.Handler { return json.WithGroup(name) })
}

func (h *handler) derived(step func(slog.Handler) slog.Handler) *handler {
	next := *h
	next.derive = append(slices.Clip(h.derive), step)
	return &next
}

// resolved resolves the values once, as the JSON handler does when attributes are added.
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

// insist is Write for callers that ignore errors: it writes a buffered record again that was refused with the error of an earlier flush. It returns
// whether the record was accepted, and that error.
func (w *Writer) insist(ctx context.Context, r Record) (accepted bool, err error) {
	err = w.Write(ctx, r)
	if err == nil || !w.options.Buffered || errors.Is(err, tables.ErrTooLarge) || errors.Is(err, tables.ErrInvalid) || errors.Is(err, tables.ErrWiring) || ctx.Err() != nil {
		return err == nil, err
	}
	again := w.Write(ctx, r)
	return again == nil, errors.Join(err, again)
}

// Lines returns an io.Writer, for example for log.New: each Write stores one record under the current time, without the final line feed. ctx
// applies to all calls. The errors are those of Writer.Write. With a buffered writer, a call can return the error of a failed background flush with
// the full count: its own record is in memory.
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
