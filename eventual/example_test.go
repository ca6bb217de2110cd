package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Departure is the body of a message: an employee who has left.
type Departure struct {
	Department string
	ID         int
}

func Example() {
	ctx := context.Background()
	queue, err := eventual.NewQueue(storage(), "departures", nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := queue.Create(ctx); err != nil {
		log.Fatal(err)
	}
	if _, err := queue.Send(ctx, "archive", Departure{"Sales", 223}, nil); err != nil {
		log.Fatal(err)
	}
	worker, err := eventual.NewWorker(queue, map[string]eventual.Handler{
		"archive": func(ctx context.Context, m *eventual.Message) error {
			var who Departure
			if err := m.Decode(&who); err != nil {
				return err
			}
			fmt.Println("archiving", who.ID, "of", who.Department)
			return nil
		},
	}, nil)
	if err != nil {
		log.Fatal(err)
	}
	handled, err := worker.Drain(ctx) // a service calls Run instead, which goes on until its context ends
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(handled, "handled")
	// Output:
	// archiving 223 of Sales
	// 1 handled
}

// A handler that is interrupted goes on where it was.
func ExampleMessage_Steps() {
	ctx := context.Background()
	queue := newExampleQueue(ctx, "moves")
	if _, err := queue.Send(ctx, "move", Departure{"Sales", 223}, nil); err != nil {
		log.Fatal(err)
	}
	printing := true
	worker, err := eventual.NewWorker(queue, map[string]eventual.Handler{
		"move": func(ctx context.Context, m *eventual.Message) error {
			return m.Steps(ctx,
				eventual.Step{Name: "copy", Do: func(context.Context) error {
					fmt.Println("copied")
					return nil
				}},
				eventual.Step{Name: "print", Do: func(context.Context) error {
					if printing = !printing; !printing {
						return errors.New("out of paper")
					}
					fmt.Println("printed")
					return nil
				}},
			)
		},
	}, &eventual.WorkerOptions{RetryDelay: func(int) time.Duration { return 0 }})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := worker.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	// Output:
	// copied
	// printed
}

// Messages that fail too often wait for somebody to look at them.
func ExampleQueue_Poison() {
	ctx := context.Background()
	queue := newExampleQueue(ctx, "letters")
	if _, err := queue.Send(ctx, "letter", "to nobody", nil); err != nil {
		log.Fatal(err)
	}
	worker, err := eventual.NewWorker(queue, map[string]eventual.Handler{
		"letter": func(context.Context, *eventual.Message) error { return errors.New("no address") },
	}, &eventual.WorkerOptions{MaxDequeues: 2, RetryDelay: func(int) time.Duration { return 0 }})
	if err != nil {
		log.Fatal(err)
	}
	if _, err := worker.Drain(ctx); err != nil {
		log.Fatal(err)
	}
	entries, err := queue.Poison().Peek(ctx, 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range entries {
		fmt.Printf("%s %s: %s, after %d deliveries\n", e.Type, e.Body(), e.Reason, e.Dequeues)
	}
	n, err := queue.Poison().Requeue(ctx, func(e eventual.PoisonMessage) bool { return e.Reason == "no address" })
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "back on the queue")
	// Output:
	// letter "to nobody": no address, after 2 deliveries
	// 1 back on the queue
}

// storage opens the service that the tests share.
func storage() *tables.Account {
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	return account
}

func newExampleQueue(ctx context.Context, name string) *eventual.Queue {
	queue, err := eventual.NewQueue(storage(), name, nil)
	if err != nil {
		log.Fatal(err)
	}
	if err := queue.Create(ctx); err != nil {
		log.Fatal(err)
	}
	return queue
}

// openSigned opens a queue whose messages only the programs that can read the table Secrets can make.
func openSigned(account *tables.Account) (*eventual.Queue, error) {
	keys := eventual.StoredSigningKeys(account.Table("Secrets"), "orders") // Queue.Create makes it
	return eventual.NewQueue(account, "orders", &eventual.QueueOptions{SigningKeys: keys})
}

func ExampleStoredSigningKeys() {
	queue, err := openSigned(storage())
	if err == nil {
		err = queue.Create(context.Background())
	}
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(queue.Name())
	// Output: orders
}

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
