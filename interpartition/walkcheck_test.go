package interpartition_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// check is for quiet ends: the index holds what the entities say, and nothing else; nothing was given up; and what the index
// holds is so well kept that it goes when the entities are deleted.
func (w *walked) check(ctx context.Context, s *storagetest.Service) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	rows, err := rawRows(ctx, p)
	if err != nil {
		return err
	}
	left, err := lengths(ctx, p, w.queue, w.queue+"-poison")
	if err != nil {
		return err
	}
	if w.judge != nil {
		return w.judge(rows, left[1])
	}
	entities, err := checkRows(rows)
	if err != nil {
		return err
	}
	if left[0] > 0 || left[1] > 0 {
		return fmt.Errorf("%d messages are left, %d were given up", left[0], left[1])
	}
	w.came[endOf(entities)] = true
	held := contentOf(rows)
	if _, known := w.gone[held]; !known {
		w.gone[held] = w.deleteAll(ctx, p, entities)
	}
	return w.gone[held]
}

// lengths counts the messages of queues.
func lengths(ctx context.Context, p *process, queues ...string) ([]int, error) {
	var lengths []int
	for _, name := range queues {
		properties, err := eventual.QueueService(p.queue.Account()).NewQueueClient(name).GetProperties(ctx, nil)
		if err != nil {
			return nil, err
		}
		lengths = append(lengths, int(*properties.ApproximateMessagesCount))
	}
	return lengths, nil
}

// takenIsKept judges quiet ends of sceneHandOver by one thing alone: the entity that took the key has the copy. Where the copy
// is still that of the first one, which nobody removed, the intent of the second is not forgotten.
func takenIsKept(rows []map[string]string, poisoned int) error {
	taken, owner := false, ""
	for _, row := range rows {
		switch row["RowKey"] {
		case at(2).Row:
			taken = row["Email"] == "a"
		case "a":
			owner = row["_tpPrimary"]
		}
	}
	first, second := at(1).Row, at(2).Row
	if !taken || owner == second || owner == first && poisoned == 1 {
		return nil
	}
	return fmt.Errorf("the copy of key a is %q's, and %d messages were given up", owner, poisoned)
}

// checkRows compares the stored rows of the index with those of the entities, and returns the entities' rows.
func checkRows(rows []map[string]string) (entities []map[string]string, err error) {
	copies, claims := map[string]string{}, map[string]string{}
	for _, row := range rows {
		at := row["PartitionKey"] + " " + row["RowKey"]
		switch {
		case row["_tpReserved"] != "":
			return nil, fmt.Errorf("row %q reserves a key", at)
		case row["_tpClaim"] != "":
			at = row["PartitionKey"] + " " + row["_tpClaim"]
			if claims[at] != "" {
				return nil, fmt.Errorf("copy %q has two claims", at)
			}
			claims[at] = joined(row["_tpPartition"], row["_tpPrimary"])
		case row["_tpPrimary"] != "":
			copies[at] = copyOf(row, row["_tpPartition"], row["_tpPrimary"], row["_tpVersion"])
		default:
			entities = append(entities, row)
		}
	}
	wanted, owners := map[string]string{}, map[string]string{}
	for _, row := range entities {
		at := "email_" + row["PartitionKey"] + " " + row["Email"]
		if wanted[at] != "" {
			return nil, fmt.Errorf("two entities have key %q", at)
		}
		wanted[at] = copyOf(row, row["PartitionKey"], row["RowKey"], row["odata.etag"])
		owners[at] = joined(row["PartitionKey"], row["RowKey"])
	}
	if !maps.Equal(copies, wanted) || !maps.Equal(claims, owners) {
		return nil, fmt.Errorf("the index holds\n%swith claims\n%sand should hold\n%s", lines(copies), lines(claims), lines(wanted))
	}
	return entities, nil
}

// copyOf is what a row, or the copy of it, holds of an entity.
func copyOf(row map[string]string, partition, key, version string) string {
	return joined(partition, key, row["Department"], row["ID"], row["Name"], row["Email"], row["_tpIncarnation"], version)
}

// endOf tells how the entities are.
func endOf(entities []map[string]string) string {
	texts := make([]string, len(entities))
	for i, row := range entities {
		texts[i] = joined(row["ID"], row["Email"], row["Name"])
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// contentOf is all that the rows hold, but for what tells only when and by whom they were written.
func contentOf(rows []map[string]string) string {
	var b strings.Builder
	for _, row := range rows {
		for _, name := range slices.Sorted(maps.Keys(row)) {
			switch name {
			case "odata.etag", "Timestamp", "_tpVersion", "_tpWrite":
			default:
				fmt.Fprintf(&b, "%s=%q ", name, row[name])
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// deleteAll deletes the entities as a user would. Nothing must be left: a copy whose claim is a wrong one would be.
func (w *walked) deleteAll(ctx context.Context, p *process, entities []map[string]string) error {
	for _, row := range entities {
		if err := p.repo.DeleteUnconditional(ctx, tables.Key{Partition: row["PartitionKey"], Row: row["RowKey"]}); err != nil {
			return fmt.Errorf("deleting the entities: %w", err)
		}
	}
	if w.async {
		if _, err := w.work(ctx, p); err != nil {
			return fmt.Errorf("deleting the entities: %w", err)
		}
	}
	if rows, err := rawRows(ctx, p); err != nil || len(rows) > 0 {
		return fmt.Errorf("when the entities are deleted there is left: %v (%v)", rows, err)
	}
	return nil
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
