package interpartition_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"

	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/metric/noop"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// refusedMeter counts what the counter of refused transactions is given.
type refusedMeter struct {
	noop.MeterProvider
	n *atomic.Int64
}

func (m refusedMeter) Meter(string, ...metric.MeterOption) metric.Meter {
	return refusedInstruments{n: m.n}
}

type refusedInstruments struct {
	noop.Meter
	n *atomic.Int64
}

type refusedCounter struct {
	noop.Int64Counter
	n *atomic.Int64
}

func (c refusedCounter) Add(_ context.Context, n int64, _ ...metric.AddOption) { c.n.Add(n) }

func (m refusedInstruments) Int64Counter(name string, _ ...metric.Int64CounterOption) (metric.Int64Counter, error) {
	if name == "tablepatterns.refused_together" {
		return refusedCounter{n: m.n}, nil
	}
	return noop.Int64Counter{}, nil
}

type labelled struct {
	tables.Meta
	ID    int
	Label string
}

// TestRefusedTogether: copies of several entities that are refused together are logged and counted, without keys and values. A worker, whose message does not say which
// copies are new, expects the entities' own copies first, and then none.
func TestRefusedTogether(t *testing.T) {
	const secret = "topsecret"
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	var log bytes.Buffer
	counter := &storagetest.RequestCounter{}
	options := s.ClientOptions
	options.PerRetryPolicies = append(options.PerRetryPolicies, counter)
	var n atomic.Int64
	account := harness.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{
		ClientOptions: options, MeterProvider: refusedMeter{n: &n}, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))}))
	queue := harness.Must[*eventual.Queue](t)(eventual.NewQueue(account, s.QueueName(t), nil))
	index := interpartition.NewIndex("label", func(l *labelled) compoundkey.Part { return compoundkey.String(l.Label) },
		nil)
	repo := harness.Must[*patterns.Repository[labelled]](t)(patterns.NewRepository(harness.In(account.Table(s.TableName(t)), queue), patterns.Schema[labelled]{
		Key: func(l *labelled) tables.Key { return tables.Key{Partition: "p", Row: fmt.Sprint("secretrow", l.ID)} }}, patterns.Async(index)))
	harness.Check(t, repo.Table().Create(ctx), queue.Create(ctx))
	x := repo.Table().NewTransaction()
	for id := range 20 {
		repo.StageInsert(x, &labelled{ID: id, Label: fmt.Sprint(secret, id)})
	}
	_, err := x.Commit(ctx)
	harness.Check(t, err)
	counter.Reset()
	worker := harness.Must[*eventual.Worker](t)(eventual.NewWorker(queue, nil, nil))
	_, err = worker.Drain(ctx)
	harness.Check(t, err)
	t.Logf("%d refused, %v", n.Load(), counter.Kinds())
	if counter.CountOf(storagetest.Batch) != 2 {
		t.Error("the worker does not write the copies together")
	}
	if lines := strings.Count(log.String(), "refused copies of several entities together"); n.Load() != 1 || int64(lines) != n.Load() {
		t.Errorf("%d counted, %d lines\n%s", n.Load(), lines, log.String())
	}
	if strings.Contains(log.String(), "secret") {
		t.Errorf("the log has a key or a value:\n%s", log.String())
	}
	harness.Check(t, harness.Clean(ctx, repo.Verify, nil))
}
