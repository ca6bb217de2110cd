package interpartition_test

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// walked is a world small enough to be walked through: entities with one inter-partition index, writers that change them, and
// workers.
type walked struct {
	kind
	entities []*employee // there at the beginning
	writers  [][]change  // each does its changes one after another, and stops at the first that fails
	workers  int         // processes that carry out messages
	waive    lease.Rules // what nobody keeps to

	table, queue string
}

// change is one operation of a writer.
type change func(ctx context.Context, repo *patterns.Repository[employee]) error

// at is the key of an entity of the walks.
func at(id int) patterns.Key { return keyOf(&employee{Department: "Sales", ID: id}) }

// with is an entity of the walks.
func with(id int, email string) *employee {
	return &employee{Department: "Sales", ID: id, Name: "before", Email: email}
}

// moves gives an entity another index key, or the same: then only what the copy holds changes.
func moves(id int, email string) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		e, err := repo.Get(ctx, at(id))
		if err != nil {
			return err
		}
		e.Name, e.Email = "after", email
		return repo.Replace(ctx, e)
	}
}

// goes deletes an entity.
func goes(id int) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		e, err := repo.Get(ctx, at(id))
		if err != nil {
			return err
		}
		return repo.Delete(ctx, e)
	}
}

// comes inserts an entity.
func comes(id int, email string) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		return repo.Insert(ctx, with(id, email))
	}
}

// walkVisibility is long against the waits between two attempts, which pass for one process alone in a walk.
const walkVisibility = time.Minute

// stage builds the world.
func (w *walked) stage(t testing.TB, s *storagetest.Service) storagetest.InterleavingStage {
	t.Helper()
	w.table, w.queue = "Employees", "intents"
	p := must[*process](t)(w.start(s))
	poison := p.queue.Account().Queue(w.queue + "-poison")
	_, err := poison.Create(t.Context(), nil)
	for _, err := range []error{err, p.repo.Table().Create(t.Context()), p.queue.Create(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, e := range w.entities {
		copied := *e
		if err := p.repo.Insert(t.Context(), &copied); err != nil {
			t.Fatal(err)
		}
	}
	if w.async {
		must[int](t)(w.work(t.Context(), p))
	}
	rows := must[[]map[string]string](t)(rawRows(t.Context(), p))
	if keys, err := w.agree(rows); err != nil || len(keys) != len(w.entities) {
		t.Fatalf("%d entities, %v", len(keys), err)
	}
	stage := storagetest.InterleavingStage{Queues: []string{w.queue}, Check: w.check}
	for _, changes := range w.writers {
		stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error {
			return w.write(ctx, s, changes)
		})
	}
	for range w.workers {
		stage.Workers = append(stage.Workers, func(ctx context.Context, s *storagetest.Service) error {
			p, err := w.start(oneGet(s))
			if err == nil {
				_, err = w.work(lease.Waive(ctx, w.waive), p)
			}
			return err
		})
	}
	return stage
}

// start is a process of the world.
func (w *walked) start(s *storagetest.Service) (*process, error) {
	account, err := patterns.NewAccountFromConnectionString(s.ConnectionString, &patterns.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	queue, err := eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: walkVisibility})
	if err != nil {
		return nil, err
	}
	p := &process{queue: queue, email: interpartition.NewIndex("email", func(e *employee) compoundkey.Part { return text(e.Email) })}
	if w.unique {
		p.email.Unique()
	}
	schema := patterns.Schema[employee]{Key: keyOf, RowPrefix: "empid", Intents: queue}
	if w.async {
		schema.Intents = queue.Async()
	}
	p.repo, err = patterns.NewRepository(account.Table(w.table), schema, p.email)
	return p, err
}

// write is a writer's life.
func (w *walked) write(ctx context.Context, s *storagetest.Service, changes []change) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	for _, change := range changes {
		if err := change(lease.Waive(ctx, w.waive), p.repo); err != nil {
			return err
		}
	}
	return nil
}

// work is a worker's life. A message whose turn has not come, since another entity still has the key, comes again when
// everybody else is done.
func (w *walked) work(ctx context.Context, p *process) (int, error) {
	worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: 20,
		RetryDelay: func(int) time.Duration { return time.Second }})
	if err != nil {
		return 0, err
	}
	return worker.Drain(ctx)
}

// oneGet lets a process get messages once: to all further gets the answer is that there are none. So one life of a worker is
// one message, and all that it would do afterwards is what its next life does, without the polls in between that find
// nothing, of which every order would be walked.
func oneGet(s *storagetest.Service) *storagetest.Service {
	once := *s
	once.ClientOptions.PerCallPolicies = append(once.ClientOptions.PerCallPolicies[:len(once.ClientOptions.PerCallPolicies):len(once.ClientOptions.PerCallPolicies)], new(onlyGet))
	return &once
}

// onlyGet is the policy of oneGet. A worker polls one shard with one goroutine at a time.
type onlyGet struct{ done bool }

func (g *onlyGet) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if raw.Method != http.MethodGet || !strings.HasSuffix(raw.URL.Path, "/messages") {
		return req.Next()
	}
	if !g.done {
		g.done = true
		return req.Next()
	}
	return &http.Response{Status: "200 OK", StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: raw,
		Header: http.Header{"Content-Type": {"application/xml"}}, Body: io.NopCloser(strings.NewReader(`<QueueMessagesList />`))}, nil
}

// check is for quiet ends: the index holds what the entities say, and nothing else; and it is kept so well that it goes with
// them.
func (w *walked) check(ctx context.Context, s *storagetest.Service) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	rows, err := rawRows(ctx, p)
	if err != nil {
		return err
	}
	ids, err := w.agree(rows)
	if err != nil {
		return err
	}
	for _, q := range []string{w.queue, w.queue + "-poison"} {
		properties, err := p.queue.Account().Queue(q).GetProperties(ctx, nil)
		if err != nil || *properties.ApproximateMessagesCount != 0 {
			return fmt.Errorf("queue %s is not empty (%v)", q, err)
		}
	}
	for _, key := range ids {
		if err := p.repo.DeleteUnconditional(ctx, key); err != nil {
			return fmt.Errorf("deleting %v: %w", key, err)
		}
	}
	if w.async {
		if _, err := w.work(ctx, p); err != nil {
			return err
		}
	}
	if rows, err = rawRows(ctx, p); err != nil || len(rows) > 0 {
		return fmt.Errorf("rows are left when the entities are deleted: %v (%v)", rows, err)
	}
	return nil
}

// agree holds the index's rows, as stored, against the entities', and returns the keys of these.
func (w *walked) agree(rows []map[string]string) ([]patterns.Key, error) {
	copies, claims, wanted := map[string]string{}, map[string]string{}, map[string]string{}
	var keys []patterns.Key
	for _, row := range rows {
		at := row["PartitionKey"] + " " + row["RowKey"]
		switch {
		case row["_tpReserved"] != "":
			return nil, fmt.Errorf("row %q reserves a key", at)
		case row["_tpClaim"] != "":
			claimed := row["PartitionKey"] + " " + row["_tpClaim"]
			if claims[claimed] != "" {
				return nil, fmt.Errorf("two claims of copy %q", claimed)
			}
			claims[claimed] = joined(row["_tpPartition"], row["_tpPrimary"])
		case row["_tpPrimary"] != "":
			copies[at] = joined(row["_tpPartition"], row["_tpPrimary"], row["Name"], row["Email"], row["_tpIncarnation"], row["_tpVersion"])
		default:
			keys = append(keys, patterns.Key{Partition: row["PartitionKey"], Row: row["RowKey"]})
			if row["Email"] == "" {
				continue
			}
			key := "email_" + row["PartitionKey"] + " " + row["Email"]
			if wanted[key] != "" {
				return nil, fmt.Errorf("two entities have key %q", key)
			}
			wanted[key] = joined(row["PartitionKey"], row["RowKey"], row["Name"], row["Email"], row["_tpIncarnation"], row["odata.etag"])
		}
	}
	owners := map[string]string{}
	for at, copied := range wanted {
		parts := strings.Fields(copied)
		owners[at] = joined(parts[0], parts[1])
	}
	if !maps.Equal(copies, wanted) || !maps.Equal(claims, owners) {
		return nil, fmt.Errorf("the index holds\n%s with claims\n%s and should hold\n%s", lines(copies), lines(claims), lines(wanted))
	}
	return keys, nil
}

// rawRows reads the table as it is stored.
func rawRows(ctx context.Context, p *process) (rows []map[string]string, err error) {
	pager := p.repo.Table().Client().NewListEntitiesPager(nil)
	for pager.More() {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, body := range page.Entities {
			row, err := decode(body)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}
