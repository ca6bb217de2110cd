package eventual_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Salary is an entity that messages change.
type Salary struct {
	tables.Meta
	Department string
	ID, Amount int
}

// Raise is the body of a message.
type Raise struct {
	Department string
	ID, By     int
}

// ownerProcess returns the workers of a process that owns some shards: one for each, with one handler at a time. So the process writes
// to a partition in one transaction after another, while it works on several partitions at once.
func ownerProcess(queue *eventual.Queue, salaries *patterns.Repository[Salary], shards ...int) (workers []*eventual.Worker) {
	handlers := map[string]eventual.Handler{"raise": func(ctx context.Context, m *eventual.Message) error {
		var raise Raise
		if err := m.Decode(&raise); err != nil {
			return err
		}
		// Update writes under the ETag that it has read. That keeps the amount right if another process takes this shard, too. A duplicate
		// would raise twice: a real handler stores m.ID beside the amount, and skips an ID that it finds.
		_, err := salaries.Update(ctx, tables.Key{Partition: raise.Department, Row: compoundkey.Join("", compoundkey.Int(raise.ID, 6))}, func(s *Salary) error {
			s.Amount += raise.By
			return nil
		})
		return err
	}}
	for _, shard := range shards {
		worker, err := eventual.NewWorker(queue, handlers, &eventual.WorkerOptions{Shards: []int{shard}, Concurrency: 1})
		if err != nil {
			log.Fatal(err)
		}
		workers = append(workers, worker)
	}
	return workers
}

// Each of two processes owns half of the partitions: all messages of a department go to the same worker of the same process, and no two
// processes write to one partition at a time. Give each process its number, such as the ordinal of a StatefulSet.
//
// If a process dies, the messages of its shards become visible after the visibility timeout and wait until a process takes these shards.
// To wait less, let a second process take them, too: both are right, since each message is leased by one of them, and they may only get
// more conflicts, which Update retries.
func ExampleWorkerOptions_ownedPartitions() {
	ctx := context.Background()
	service, err := storagetest.OpenShared()
	if err != nil {
		log.Fatal(err)
	}
	account, err := tables.NewAccountFromConnectionString(service.ConnectionString, &tables.AccountOptions{ClientOptions: service.ClientOptions})
	if err != nil {
		log.Fatal(err)
	}
	store, err := patterns.Open("owners", &patterns.StoreOptions{Account: account})
	if err != nil {
		log.Fatal(err)
	}
	salaries, err := patterns.NewRepository(store.Table("OwnersSalaries"), patterns.Schema[Salary]{Key: func(s *Salary) tables.Key {
		return tables.Key{Partition: s.Department, Row: compoundkey.Join("", compoundkey.Int(s.ID, 6))}
	}})
	if err != nil {
		log.Fatal(err)
	}
	queue, err := eventual.NewQueue(account, "owners-raises", &eventual.QueueOptions{Shards: 8})
	if err != nil {
		log.Fatal(err)
	}
	if err := errors.Join(store.Create(ctx), queue.Create(ctx)); err != nil {
		log.Fatal(err)
	}
	departments := []string{"Finance", "Legal", "Marketing", "Research", "Sales", "Support"}
	for _, department := range departments {
		if err := salaries.Insert(ctx, &Salary{Department: department, ID: 223, Amount: 3000}); err != nil {
			log.Fatal(err)
		}
		for range 5 {
			if _, err := queue.Send(ctx, "raise", Raise{department, 223, 100}, &eventual.SendOptions{Partition: department}); err != nil {
				log.Fatal(err)
			}
		}
		fmt.Println(department, "belongs to process", queue.Shard(department)/4)
	}
	for number, workers := range [][]*eventual.Worker{ownerProcess(queue, salaries, 0, 1, 2, 3), ownerProcess(queue, salaries, 4, 5, 6, 7)} {
		handled := 0
		for _, worker := range workers {
			n, err := worker.Drain(ctx) // a service calls Run of all workers, each in a goroutine
			if err != nil {
				log.Fatal(err)
			}
			handled += n
		}
		fmt.Println("process", number, "has handled", handled)
	}
	for _, department := range departments {
		s, err := salaries.Get(ctx, tables.Key{Partition: department, Row: compoundkey.Join("", compoundkey.Int(223, 6))})
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.Department, s.Amount)
	}
	// Output:
	// Finance belongs to process 0
	// Legal belongs to process 1
	// Marketing belongs to process 0
	// Research belongs to process 1
	// Sales belongs to process 1
	// Support belongs to process 0
	// process 0 has handled 15
	// process 1 has handled 15
	// Finance 3500
	// Legal 3500
	// Marketing 3500
	// Research 3500
	// Sales 3500
	// Support 3500
}
