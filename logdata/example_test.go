package logdata_test

import (
	"context"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// openWeb opens the log of the web servers, with its container.
func openWeb(ctx context.Context, account *tables.Account, containerName string) *logdata.Log {
	container := blobstorage.Container(account, containerName)
	if _, err := container.Create(ctx, nil); err != nil {
		log.Fatal(err)
	}
	web, err := logdata.New(container, "web", nil)
	if err != nil {
		log.Fatal(err)
	}
	return web
}

// All records of two minutes, out of a day's.
func Example() {
	ctx := context.Background()
	web := openWeb(ctx, simulatedAccount(), "example-logs")
	w, err := web.NewWriter(nil) // Write returns when the record is stored
	if err != nil {
		log.Fatal(err)
	}
	afternoon := time.Date(2026, 7, 31, 15, 0, 0, 0, time.UTC)
	for minute := range 10 {
		r := logdata.Record{Time: afternoon.Add(time.Duration(minute) * time.Minute), Data: fmt.Appendf(nil, "request %d", minute)}
		if err := w.Write(ctx, r); err != nil {
			log.Fatal(err)
		}
	}
	if err := w.Close(ctx); err != nil {
		log.Fatal(err)
	}
	for r, err := range web.Query(ctx, afternoon.Add(4*time.Minute), afternoon.Add(6*time.Minute), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s %s\n", r.Time.Format(time.TimeOnly), r.Data)
	}
	for b, err := range web.Blobs(ctx, afternoon, afternoon.Add(time.Hour)) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(b.Name, b.First.Format(time.TimeOnly), b.Last.Format(time.TimeOnly), b.Records)
	}
	// Output:
	// 15:04:00 request 4
	// 15:05:00 request 5
	// web/2026/07/31/1500/000001.log 15:00:00 15:09:00 10
}

// The program's own log, sent once a second. A crash loses a second of it.
func ExampleWriter_Handler() {
	ctx := context.Background()
	web := openWeb(ctx, simulatedAccount(), "example-slog")
	w, err := web.NewWriter(&logdata.WriterOptions{Buffered: true})
	if err != nil {
		log.Fatal(err)
	}
	logger := slog.New(w.Handler(&slog.HandlerOptions{ReplaceAttr: withoutTime}))
	logger.Info("started", "port", 8080)
	logger.Error("no more room", "disk", "C:")
	if err := w.Close(ctx); err != nil {
		log.Fatal(err)
	}
	now := time.Now()
	for r, err := range web.Query(ctx, now.Add(-time.Hour), now.Add(time.Hour), nil) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%s\n", r.Data)
	}
	// Output:
	// {"level":"INFO","msg":"started","port":8080}
	// {"level":"ERROR","msg":"no more room","disk":"C:"}
}

// withoutTime leaves the time out of the JSON: the record has it already.
func withoutTime(groups []string, a slog.Attr) slog.Attr {
	if len(groups) == 0 && a.Key == slog.TimeKey {
		return slog.Attr{}
	}
	return a
}

// simulatedAccount returns an account on a new simulator in memory. A program calls tables.NewAccount or tables.NewAccountFromEnv.
func simulatedAccount() *tables.Account {
	service, err := storagetest.NewSimulator(nil)
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	return account
}
