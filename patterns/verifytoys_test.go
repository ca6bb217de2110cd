package patterns_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// roster has an Effect with Remove: a row for each tag, in the entities' partition, that lists the row keys of those who have the tag.
type roster struct{ table *tables.Table }

func (x *roster) Attach(driver.Host, *staff) (driver.Implementation, error) {
	return driver.Implementation{Name: "roster", Prior: tagOf, Rows: x.rows,
		Effect: driver.Effect{Expected: driver.Of(tagFacts), List: x.held, Read: driver.ReadEach(x.readFact), Remove: x.remove}}, nil
}

// tagOf is the Prior of the patterns that go by a tag.
func tagOf(v any, _ tables.Properties) ([]string, error) { return []string{v.(*staff).Tag}, nil }

func (x *roster) key(partition, tag string) tables.Key {
	return tables.Key{Partition: partition, Row: compoundkey.Join("roster", compoundkey.String(tag))}
}

// read returns a list and its row, nil for none.
func (x *roster) read(ctx context.Context, key tables.Key) ([]string, *tables.Entity, error) {
	row, err := x.table.Entities().Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	text, _ := row.Get("Ids").Text()
	return strings.Fields(text), row, nil
}

func (x *roster) rows(ctx context.Context, changes []*driver.Change) ([]driver.RowOperation, error) {
	type page struct {
		ids []string
		row *tables.Entity
	}
	lists, order := map[tables.Key]*page{}, []tables.Key{}
	for _, c := range changes {
		now := ""
		if c.Kind != driver.ChangeDelete {
			now = driver.As[staff](c.Entity).Tag
		}
		for _, tag := range slices.Compact(slices.Sorted(slices.Values(append(c.Prior, now)))) {
			if tag == "" {
				continue
			}
			key := x.key(c.Key.Partition, tag)
			if lists[key] == nil {
				ids, row, err := x.read(ctx, key)
				if err != nil {
					return nil, err
				}
				lists[key], order = &page{ids, row}, append(order, key)
			}
			l := lists[key]
			l.ids = slices.DeleteFunc(l.ids, func(id string) bool { return id == c.Key.Row })
			if tag == now {
				l.ids = append(l.ids, c.Key.Row)
			}
		}
	}
	var rows []driver.RowOperation
	for _, key := range order {
		l := lists[key]
		o := driver.RowOperation{Verb: driver.ReplaceRow, Row: &tables.Entity{Key: key}}
		switch {
		case l.row == nil && len(l.ids) == 0:
			continue
		case l.row == nil:
			o.Verb = driver.InsertRow
		case len(l.ids) == 0:
			o.Verb, o.Row.ETag = driver.DeleteRow, l.row.ETag
		default:
			o.Row.ETag = l.row.ETag
		}
		o.Row.Set("Ids", tables.String(strings.Join(l.ids, " ")))
		rows = append(rows, o)
	}
	return rows, nil
}

// tagFacts are the Facts of the patterns that go by a tag.
func tagFacts(v *staff) ([]driver.Fact, error) {
	if v.Tag == "" {
		return nil, nil
	}
	return []driver.Fact{{Place: v.Tag, Entity: staffKey(v)}}, nil
}

func (x *roster) held(ctx context.Context, _ driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		for row, err := range x.table.Entities().Query().Rows(compoundkey.All().Under("roster")).AllowTableScan().All(ctx) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			text, ok := row.Get("Ids").Text()
			tag := strings.TrimPrefix(row.Key.Row, "roster_")
			if !ok && !yield(driver.Fact{Place: tag, Entity: tables.Key{Partition: row.Key.Partition}, Err: errors.New("no list")}, nil) {
				return
			}
			for _, id := range strings.Fields(text) {
				if !yield(driver.Fact{Place: tag, Entity: tables.Key{Partition: row.Key.Partition, Row: id}}, nil) {
					return
				}
			}
		}
	}
}

func (x *roster) readFact(ctx context.Context, place string, entity tables.Key) (driver.Fact, bool, error) {
	ids, _, err := x.read(ctx, x.key(entity.Partition, place))
	return driver.Fact{Place: place, Entity: entity}, slices.Contains(ids, entity.Row), err
}

func (x *roster) remove(ctx context.Context, place string, entity tables.Key, wanted func(context.Context) (bool, error)) error {
	key := x.key(entity.Partition, place)
	for range 10 {
		ids, row, err := x.read(ctx, key)
		if err != nil || !slices.Contains(ids, entity.Row) {
			return err
		}
		if is, err := wanted(ctx); err != nil || is {
			return err
		}
		left := slices.DeleteFunc(ids, func(id string) bool { return id == entity.Row })
		body, _ := json.Marshal(map[string]string{"PartitionKey": key.Partition, "RowKey": key.Row, "_tpShared": "roster", "Ids": strings.Join(left, " ")})
		_, err = x.table.Client().UpdateEntity(ctx, body, &aztables.UpdateEntityOptions{IfMatch: &row.ETag, UpdateMode: aztables.UpdateModeReplace})
		if err == nil {
			return nil
		}
	}
	return errors.New("the list changes all the time")
}

// notes has an Effect with facts of what is outside: a row for each entity with a text, in the text's partition.
type notes[T any] struct {
	name  string
	table *tables.Table
	text  func(*T) string
	keyOf func(any) tables.Key
}

func (x *notes[T]) Attach(host driver.Host, _ *T) (driver.Implementation, error) {
	x.keyOf = host.KeyOf
	return driver.Implementation{Name: x.name, Intents: eventual.IntentQueue(nil, nil),
		Prior:  func(v any, _ tables.Properties) ([]string, error) { return []string{x.text(v.(*T))}, nil },
		Effect: driver.Effect{OutsideKeys: x.outsideKeys, Reconcile: driver.ReconcileEach(x.reconcile), Expected: driver.Of(x.facts), List: x.held, Read: driver.ReadEach(x.readFact)}}, nil
}

func (x *notes[T]) outsideKeys(_ context.Context, c *driver.Change) ([]string, error) {
	keys := slices.Clone(c.Prior)
	if c.Kind != driver.ChangeDelete {
		keys = append(keys, x.text(driver.As[T](c.Entity)))
	}
	slices.Sort(keys)
	return slices.DeleteFunc(slices.Compact(keys), func(text string) bool { return text == "" }), nil
}

func (x *notes[T]) key(text string, entity tables.Key) tables.Key {
	return tables.Key{Partition: x.name + "_" + text, Row: entity.Partition + "~" + entity.Row}
}

func (x *notes[T]) reconcile(ctx context.Context, r *driver.Reconciliation) error {
	for _, text := range r.Keys {
		note := driver.RowOperation{Verb: driver.InsertRow, Row: &tables.Entity{Key: x.key(text, r.Key)}}
		if r.Entity == nil || x.text(driver.As[T](r.Entity)) != text {
			row, err := x.table.Entities().Get(ctx, note.Row.Key)
			if errors.Is(err, tables.ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			note = driver.RowOperation{Verb: driver.DeleteRow, Row: row}
		}
		if err := r.Write(ctx, text, x.table, note); err != nil && !engine.Lost(err) {
			return err
		}
	}
	return nil
}

func (x *notes[T]) facts(v *T) ([]driver.Fact, error) {
	if x.text(v) == "" {
		return nil, nil
	}
	return []driver.Fact{{Place: x.text(v), Entity: x.keyOf(v)}}, nil
}

func (x *notes[T]) held(ctx context.Context, _ driver.Scope) iter.Seq2[driver.Fact, error] {
	return func(yield func(driver.Fact, error) bool) {
		for row, err := range x.table.Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				yield(driver.Fact{}, err)
				return
			}
			text, ours := strings.CutPrefix(row.Key.Partition, x.name+"_")
			partition, id, _ := strings.Cut(row.Key.Row, "~")
			if ours && !yield(driver.Fact{Place: text, Entity: tables.Key{Partition: partition, Row: id}}, nil) {
				return
			}
		}
	}
}

func (x *notes[T]) readFact(ctx context.Context, place string, entity tables.Key) (driver.Fact, bool, error) {
	_, err := x.table.Entities().Get(ctx, x.key(place, entity))
	if errors.Is(err, tables.ErrNotFound) {
		return driver.Fact{}, false, nil
	}
	return driver.Fact{Place: place, Entity: entity}, err == nil, err
}

// has reports whether an entity has a note of a text.
func (x *notes[T]) has(t testing.TB, text string, entity tables.Key) bool {
	t.Helper()
	_, has, err := x.readFact(t.Context(), text, entity)
	if err != nil {
		t.Fatal(err)
	}
	return has
}
