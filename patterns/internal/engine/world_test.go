package engine_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// card is an entity with a unique key.
type card struct {
	tables.Meta
	PartitionKey, RowKey string
	Number, Name         string
}

// desk is one process that stores cards of one partition.
type desk struct {
	store *patterns.Store
	cards *patterns.Repository[card]
	index *interpartition.Unique[card, string]
}

const (
	deskPartition = "p"
	deskIndex     = "number"
)

// openDesk opens a process. Copies are settled before a change returns, and expired ones by readers before the process ends.
func openDesk(s *storagetest.Service) (*desk, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	d := &desk{index: interpartition.NewUnique(deskIndex, func(c *card) string {
		if c.Number == "" {
			return ""
		}
		return c.Number
	}, nil)}
	if d.store, err = patterns.Open("desk", &patterns.StoreOptions{Account: account, MaxOpen: 1}); err != nil {
		return nil, err
	}
	d.cards, err = patterns.NewRepository(d.store.Table("Desk"), patterns.Schema[card]{}, d.index)
	return d, err
}

func cardKey(row string) tables.Key { return tables.Key{Partition: deskPartition, Row: row} }

// task is what a process does at a desk.
type task func(ctx context.Context, d *desk) error

// takes gives a card a number, "" for none.
func takes(row, number string) task {
	return func(ctx context.Context, d *desk) error {
		c, err := d.cards.Get(ctx, cardKey(row))
		if err != nil {
			return err
		}
		c.Number, c.Name = number, "changed"
		return d.cards.Replace(ctx, c)
	}
}

// touches changes what the copy holds, and keeps the number.
func touches(row string) task {
	return func(ctx context.Context, d *desk) error {
		c, err := d.cards.Get(ctx, cardKey(row))
		if err != nil {
			return err
		}
		c.Name += "+"
		return d.cards.Replace(ctx, c)
	}
}

func issues(row, number string) task {
	return func(ctx context.Context, d *desk) error {
		return d.cards.Insert(ctx, &card{PartitionKey: deskPartition, RowKey: row, Number: number})
	}
}

func withdraws(row string) task {
	return func(ctx context.Context, d *desk) error {
		c, err := d.cards.Get(ctx, cardKey(row))
		if err != nil {
			return err
		}
		return d.cards.Delete(ctx, c)
	}
}

// inOneSet gives each card a number, or withdraws it, in one transaction.
func inOneSet(numbers ...[2]string) task {
	return func(ctx context.Context, d *desk) error {
		x := d.cards.Table().NewTransaction()
		for _, n := range numbers {
			c, err := d.cards.Get(ctx, cardKey(n[0]))
			if err != nil {
				return err
			}
			if n[1] == withdrawn {
				d.cards.StageDelete(x, c)
				continue
			}
			c.Number = n[1]
			d.cards.StageReplace(x, c)
		}
		_, err := x.Commit(ctx)
		return err
	}
}

const withdrawn = "withdrawn"

// errMisled is the error of a reader whose answer was true at no time.
var errMisled = errors.New("misled")

// finds reads a number through the index, between two reads of all cards. If these show the same cards, the index must agree with them; otherwise what it
// finds must have the number, and if somebody has it all the time, it must find somebody.
func finds(number string, always bool) task {
	return func(ctx context.Context, d *desk) error {
		before, err := d.owner(ctx, number)
		if err != nil {
			return err
		}
		found, err := d.index.Get(ctx, number)
		if err != nil && !errors.Is(err, tables.ErrNotFound) {
			return err
		}
		after, err := d.owner(ctx, number)
		if err != nil {
			return err
		}
		got := state{}
		if found != nil {
			if found.Number != number {
				return fmt.Errorf("%w: %s has number %q, not %q", errMisled, found.RowKey, found.Number, number)
			}
			got.owner = found.RowKey + " " + found.Name + " " + string(found.ETag)
		}
		switch {
		case got.owner == "" && always:
			return fmt.Errorf("%w: nobody is found", errMisled)
		case before == after && got.owner != before.owner:
			return fmt.Errorf("%w: %q is found, and there is %q", errMisled, got.owner, before.owner)
		}
		return nil
	}
}

// state is who has a number, and the versions of all cards.
type state struct{ owner, all string }

func (d *desk) owner(ctx context.Context, number string) (now state, err error) {
	for c, err := range d.cards.Query().Partition(deskPartition).All(ctx) {
		if err != nil {
			return now, err
		}
		now.all += c.RowKey + string(c.ETag)
		if c.Number == number {
			now.owner = c.RowKey + " " + c.Name + " " + string(c.ETag)
		}
	}
	return now, nil
}

// repairs runs Repair, which finds nothing to wait for unless it is wrong.
func repairs(ctx context.Context, d *desk) error {
	_, err := d.cards.Repair(ctx, &patterns.JobOptions{Lag: 1, Concurrency: 1})
	return err
}

// markedScene is a small world: cards that are there, and processes, which do without some rules of the protocol.
type markedScene struct {
	cards [][2]string // rows and numbers
	tasks []task
	rules marks.Rules // to do without
	left  bool        // the rows of the index are marked at the beginning, as a dead process leaves them
	bare  bool        // the rows of the index are missing at the beginning
}

// stage builds the world of a walk.
func (c *markedScene) stage(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
	t.Helper()
	c.begin(t, s)
	var stage explore.InterleavingStage
	for _, task := range c.tasks {
		stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error { return c.run(ctx, s, task) })
	}
	stage.Check = c.check
	return stage
}

// check checks what holds after every request; that all reads are right; and that when all terms have passed Verify finds nothing and Repair leaves no mark.
func (c markedScene) check(ctx context.Context, s *storagetest.Service) error {
	if err := c.right(ctx, s); err != nil {
		return err
	}
	if !c.bare {
		if err := deskReads(ctx, s); err != nil {
			return err
		}
	}
	s.Wait(marks.Term + marks.Grace + time.Second)
	d, err := openDesk(s)
	if err != nil {
		return err
	}
	if err := harness.Clean(ctx, d.cards.Verify, nil); err != nil && !c.bare {
		return err
	}
	if err := errors.Join(repairs(lease.Waive(ctx, lease.Terms), d), harness.Settle(ctx, d.store)); err != nil {
		return err
	}
	c.bare = false
	_, copies, err := deskRows(ctx, s)
	for _, row := range copies {
		if row["_tpMark"] != "" {
			err = errors.Join(err, fmt.Errorf("Repair leaves %v", row))
		}
	}
	return errors.Join(err, c.right(ctx, s), deskReads(ctx, s))
}

// begin stores the cards.
func (c *markedScene) begin(t testing.TB, s *storagetest.Service) {
	t.Helper()
	d := assert.Must[*desk](t)(openDesk(s))
	ctx := t.Context()
	assert.Check(t, d.store.Create(ctx))
	for _, n := range c.cards {
		assert.Check(t, issues(n[0], n[1])(ctx, d))
	}
	assert.Check(t, harness.Settle(ctx, d.store))
	for _, n := range c.cards {
		var err error
		switch client := d.cards.Table().Client(); {
		case n[1] == "":
		case c.left:
			_, err = client.UpsertEntity(ctx, fmt.Appendf(nil, `{"PartitionKey":%q,"RowKey":%q,"_tpMark":"M"}`, deskIndex, n[1]), nil)
		case c.bare:
			_, err = client.DeleteEntity(ctx, deskIndex, n[1], nil)
		}
		assert.Check(t, err)
	}
}

// run is the life of a process.
func (c *markedScene) run(ctx context.Context, s *storagetest.Service, do task) error {
	d, err := openDesk(s)
	if err != nil {
		return err
	}
	ctx = marks.Waive(ctx, c.rules)
	return errors.Join(do(ctx, d), harness.Settle(ctx, d.store))
}

// deskRows reads the table as it is stored: the cards by row key, and the copies by number.
func deskRows(ctx context.Context, s *storagetest.Service) (cards, copies map[string]map[string]string, err error) {
	d, err := openDesk(s)
	if err != nil {
		return nil, nil, err
	}
	cards, copies = map[string]map[string]string{}, map[string]map[string]string{}
	for pager := d.cards.Table().Client().NewListEntitiesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, nil, err
		}
		for _, body := range page.Entities {
			var row map[string]string
			if err := json.Unmarshal(body, &row); err != nil {
				return nil, nil, err
			}
			map[bool]map[string]map[string]string{true: copies, false: cards}[row["PartitionKey"] == deskIndex][row["RowKey"]] = row
		}
	}
	return cards, copies, nil
}

// right checks what holds after every request: a settled row names a card that exists, has the number, and has that version; a card that
// has a number is named by its row.
func (c *markedScene) right(ctx context.Context, s *storagetest.Service) error {
	cards, copies, err := deskRows(ctx, s)
	if err != nil {
		return err
	}
	for number, row := range copies {
		owner := cards[row["_tpPrimary"]]
		if row["_tpMark"] == "" && (owner == nil || owner["Number"] != number || owner["odata.etag"] != row["_tpVersion"] || owner["Name"] != row["Name"]) {
			return fmt.Errorf("row %s is settled: %v; its card is %v", number, row, owner)
		}
	}
	for name, of := range cards {
		row := copies[of["Number"]]
		if of["Number"] != "" && !c.bare && row["_tpPrimary"] != name && row["_tpNext"] != deskPartition+"\t"+name {
			return fmt.Errorf("card %v is not named by %v", of, row)
		}
	}
	return nil
}

// deskReads compares reads through the index with the cards.
func deskReads(ctx context.Context, s *storagetest.Service) error {
	d, err := openDesk(s)
	if err != nil {
		return err
	}
	for _, number := range []string{"1", "2"} {
		if err := finds(number, false)(ctx, d); err != nil {
			return err
		}
	}
	return harness.Settle(ctx, d.store)
}

// misled counts the histories in which a reader was misled.
func misled(w explore.Walk) (n int) {
	for returned, times := range w.Returned {
		if strings.Contains(returned, errMisled.Error()) {
			n += times
		}
	}
	return n
}

// reasons are the errors of a walk, for its log.
func reasons(w explore.Walk) (all []string) {
	for returned, times := range w.Returned {
		all = append(all, fmt.Sprintf("%d: %s", times, returned))
	}
	slices.Sort(all)
	return all
}
