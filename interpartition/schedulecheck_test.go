package interpartition_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// finalRounds are how often all messages are carried out once nobody else is at work. One that waits for another
// entity to give up a key may need as many as there are entities.
const finalRounds = 5

// check lets workers carry out what is left, and holds the indexes against the entities. What cannot be carried out is
// poisoned, which is right for a key that two entities have, and for nothing else.
func (r *scheduleWorld) check(ctx context.Context, s *storagetest.Service) error {
	time.Sleep(visibility) // what is late has arrived
	p, err := r.start(s)
	if err != nil {
		return err
	}
	left := -1
	for range finalRounds {
		if left, err = r.round(ctx, s, p, 1000); err != nil || left == 0 {
			break
		}
	}
	if err == nil && left > 0 {
		if left, err = r.round(ctx, s, p, 1); err == nil && left > 0 {
			err = fmt.Errorf("%d messages are neither handled nor poisoned", left)
		}
	}
	if err != nil {
		return err
	}
	poisoned, err := poisonedEntities(ctx, p)
	if err != nil {
		return err
	}
	got, err := r.copies(ctx, p)
	if err != nil {
		return err
	}
	return r.checkIndexes(ctx, p, got, poisoned)
}

// round carries out all messages once, after all have appeared, and returns how many are left.
func (r *scheduleWorld) round(ctx context.Context, s *storagetest.Service, p *process, maxDequeues int) (left int, err error) {
	s.Wait(visibility + time.Second)
	worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: maxDequeues,
		RetryDelay: func(int) time.Duration { return time.Second }})
	if err != nil {
		return 0, err
	}
	if _, err := worker.Drain(ctx); err != nil {
		return 0, err
	}
	return p.queue.Length(ctx)
}

// poisonedEntities are the entities with an intent on the poison queue, with the reason.
func poisonedEntities(ctx context.Context, p *process) (map[tables.Key]string, error) {
	entries, err := p.queue.Poison().Peek(ctx, 32)
	if err != nil {
		return nil, err
	}
	poisoned := map[tables.Key]string{}
	for _, e := range entries {
		var intent struct{ Partition, Row string }
		if err := json.Unmarshal(e.Body(), &intent); err != nil {
			return nil, err
		}
		poisoned[tables.Key{Partition: intent.Partition, Row: intent.Row}] = e.Reason
	}
	return poisoned, nil
}

// checkIndexes compares the copies with the entities.
func (r *scheduleWorld) checkIndexes(ctx context.Context, p *process, got map[string]string, poisoned map[tables.Key]string) error {
	wanted := map[string]map[tables.Key]string{} // by copy and entity
	want := func(e *employee, at, text string) {
		if wanted[at] == nil {
			wanted[at] = map[tables.Key]string{}
		}
		wanted[at][e.Key()] = text
	}
	for e, err := range p.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return err
		}
		if r.refused[e.Name] {
			return fmt.Errorf("the writer of %q was told that it was not written, and there it is", e.Name)
		}
		if e.Email != "" {
			want(e, "email_"+e.Department+" "+e.Email, joined(e.Name, e.Email, e.Badge, e.Key().Row, string(e.ETag)))
		}
		if e.Badge != "" {
			want(e, "badge "+e.Badge, joined(e.Name, e.Key().Row, string(e.ETag)))
		}
	}
	without := map[tables.Key]bool{} // entities that another one keeps from a key
	for at, owners := range wanted {
		there := got[at]
		delete(got, at)
		if !slices.Contains(slices.Collect(maps.Values(owners)), there) {
			return fmt.Errorf("the copy at %q is %q, and should be of %q", at, there, owners)
		}
		for key, text := range owners {
			if text != there {
				without[key] = true
			}
		}
	}
	if len(got) > 0 {
		return fmt.Errorf("copies of nobody:\n%s", lines(got))
	}
	return r.checkPoisoned(without, poisoned)
}

// checkPoisoned checks that the poison queue has the intents of exactly the entities whose index key another entity owns.
func (r *scheduleWorld) checkPoisoned(without map[tables.Key]bool, poisoned map[tables.Key]string) error {
	for key, reason := range poisoned {
		if !without[key] {
			return fmt.Errorf("a message of %v is on the poison queue, and nobody has its keys: %s", key, reason)
		}
	}
	for key := range without {
		if _, ok := poisoned[key]; !ok {
			return fmt.Errorf("another entity has a key of %v, and no message waits for it", key)
		}
	}
	if r.unique && len(without) > 0 {
		return fmt.Errorf("unique keys, and two entities have the same: %v", without)
	}
	r.Log.Add(duplicates, int64(len(without)))
	return nil
}
