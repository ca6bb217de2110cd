// Step 5 of the tutorial, second part: a message that cannot be handled waits on the poison queue until somebody requeues it.
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// Welcome is the message to a new employee.
type Welcome struct{ Email string }

// mailer handles messages of type welcome.
type mailer struct{ broken bool }

func (m *mailer) welcome(_ context.Context, message *eventual.Message) error {
	var to Welcome
	if err := message.Decode(&to); err != nil {
		return err
	}
	if m.broken {
		return errors.New("the mail server is down")
	}
	fmt.Println("welcome,", to.Email)
	return nil
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	store, err := patterns.Open("contoso", nil)
	if err != nil {
		return err
	}
	mail, err := eventual.OpenQueue(store, "mail", nil)
	if err != nil {
		return err
	}
	if err := store.Create(ctx); err != nil {
		return err
	}
	m := &mailer{broken: true}
	worker, err := eventual.NewWorker(mail, map[string]eventual.Handler{"welcome": m.welcome},
		&eventual.WorkerOptions{MaxDequeues: 2, RetryDelay: func(int) time.Duration { return 0 }}) // fails soon; the default is 5, with growing delays
	if err != nil {
		return err
	}
	if _, err := mail.Send(ctx, "welcome", Welcome{"june@contoso.com"}, nil); err != nil {
		return err
	}
	if _, err := worker.Drain(ctx); err != nil {
		return err
	}

	poisoned, err := mail.Poison().Peek(ctx, 10)
	if err != nil {
		return err
	}
	for _, p := range poisoned {
		fmt.Printf("poisoned: %s, delivered %d times: %s\n", p.Type, p.Dequeues, p.Reason)
	}
	m.broken = false
	n, err := mail.Poison().Requeue(ctx, nil)
	if err != nil {
		return err
	}
	fmt.Println("requeued:", n)
	_, err = worker.Drain(ctx)
	return err
}
