package eventual_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
)

// A service runs a worker until it is told to stop, and looks at the poison queue now and then.
func ExampleWorker_Run() {
	background := context.Background()
	queue := newExampleQueue(background, "service")
	ctx, stop := context.WithCancel(background) // signal.NotifyContext in a service
	worker, err := eventual.NewWorker(queue, map[string]eventual.Handler{
		"archive": func(ctx context.Context, m *eventual.Message) error {
			fmt.Println("archiving", string(m.Body))
			stop()
			return nil
		},
	}, &eventual.WorkerOptions{
		Concurrency: 32,
		StopTimeout: 20 * time.Second, // less than what the platform gives a process to end
	})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := queue.Send(ctx, "archive", 223, nil); err != nil {
		log.Fatal(err)
	}
	if err := worker.Run(ctx); err != nil {
		log.Fatal(err)
	}
	waiting, err := queue.Poison().Length(background)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(worker.Stats().Handled, "handled,", waiting, "poisoned")
	// Output:
	// archiving 223
	// 1 handled, 0 poisoned
}
