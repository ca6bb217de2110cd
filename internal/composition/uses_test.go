package composition

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/dataseries"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/heterogeneous"
	"github.com/tablepatterns/tablepatterns/highvolumedelete"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/logtail"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/scatter"
	"github.com/tablepatterns/tablepatterns/tables"
)

// use is something that is done with a repository which has a pattern, or that makes one.
type use struct {
	name string
	// run makes and does it. Its error is the refusal, for what does not compose, and what went wrong for what does.
	run func(t testing.TB, k *kit, p part) error
}

func uses() []use { return append(append(makers(), verbs()...), others()...) }

// TestMatrixUses makes and does each use with each pattern.
func TestMatrixUses(t *testing.T) {
	var names []string
	for _, u := range uses() {
		names = append(names, u.name)
	}
	x, registry := readMatrix(t, "Patterns in use", names), newRegistry(t)
	for i, u := range uses() {
		for j, p := range parts() {
			t.Run(u.name+"+"+p.name, func(t *testing.T) {
				t.Parallel()
				k := newKit(t, registry)
				err := u.run(t, k, p)
				if x.cells[[2]int{i, j}] {
					assert.Check(t, err)
					return
				}
				kind := map[bool]error{true: tables.ErrInvalid, false: tables.ErrWiring}[u.name == "Repository.Merge"] // what it merges is input
				k.mustRefuse(t, err, kind, k.nameOfPattern(t, p.make(t, k, 0)))
			})
		}
	}
}

// makers make repositories of their own.
func makers() []use {
	return []use{
		{"logtail.New", func(t testing.TB, k *kit, p part) error {
			log, err := logtail.New(harness.In(k.table, k.queue), logtail.Schema[item]{Partition: func(v *item) string { return v.Site }, Window: time.Hour}, k.makeParts(t, p)...)
			if err != nil {
				return err
			}
			r := log.Repository()
			return k.lifeBy(t, r, p, log.Append, r.Replace, r.Delete)
		}},
		{"scatter.New", func(t testing.TB, k *kit, p part) error {
			row := func(v *item) string {
				return compoundkey.Join("item", compoundkey.Time(v.LoggedAt), compoundkey.Int(v.ID, 6))
			}
			spread, err := scatter.New(harness.In(k.table, k.queue), scatter.Schema[item]{Order: scatter.ByTime("item", 0), Row: row}, nil, k.makeParts(t, p)...)
			if err != nil {
				return err
			}
			k.keyOf = spread.Repository().KeyOf
			assert.Check(t, spread.Prepare(t.Context(), k.itemOf(1, "a", false)))
			return k.lifeBy(t, spread.Repository(), p, spread.Insert, spread.Replace, spread.Delete)
		}},
		{"scatter.NewNatural", func(t testing.TB, k *kit, p part) error {
			n, err := scatter.NewNatural(harness.In(k.table, k.queue), scatter.NaturalSchema[item]{Name: "sites", Prefix: "item", Partition: func(v *item) compoundkey.Part { return compoundkey.String(v.Site) }, Row: func(v *item) string { return plainKey(v).Row }}, nil, k.makeParts(t, p)...)
			if err != nil {
				return err
			}
			return k.lifeBy(t, n.Repository(), p, n.Insert, n.Replace, n.Delete)
		}},
		{"highvolumedelete.New", func(t testing.TB, k *kit, p part) error {
			tables, err := highvolumedelete.New(k.account, highvolumedelete.Schema[item]{Name: "Days", Time: func(v *item) time.Time { return v.LoggedAt },
				Open: func(table *tables.Table) (*patterns.Repository[item], error) {
					k.table, k.sites = table, k.sitesOn(t, table)
					return k.plainOn(table, k.queue, k.makeParts(t, p))
				}})
			if err != nil {
				return err
			}
			r, err := tables.Repository(k.at)
			if err != nil {
				return err
			}
			assert.Check(t, tables.Prepare(t.Context(), k.at, k.at))
			return k.lifeBy(t, r, p, tables.Insert, tables.Replace, tables.Delete)
		}},
	}
}

// lifeBy takes an item through its life by the verbs of a maker.
func (k *kit) lifeBy(t testing.TB, r *patterns.Repository[item], p part, insert, replace, remove func(context.Context, *item) error) error {
	ctx := t.Context()
	k.keyOf = r.KeyOf
	a, b := k.itemOf(1, "a", p.name == "largeentities.Stream"), k.itemOf(1, "b", p.name == "largeentities.Stream")
	b.Entry = a.Entry
	assert.Check(t, k.prepareFor(t, r, a))
	if err := insert(ctx, a); err != nil {
		return err
	}
	return k.onward(ctx, r, a, b, replace, remove)
}

// inserted is a plain repository of one pattern with an item in it.
func (k *kit) inserted(t testing.TB, p part) (*patterns.Repository[item], *item) {
	t.Helper()
	r := assert.Must[*patterns.Repository[item]](t)(k.plain(k.makeParts(t, p)))
	a := k.itemOf(1, "a", p.name == "largeentities.Stream")
	assert.Check(t, k.prepareFor(t, r, a), r.Insert(t.Context(), a))
	k.calls.Reset()
	return r, a
}

// verbs are what a repository can do beside the verbs that TestMatrix has.
func verbs() []use {
	return []use{
		{"Repository.Upsert, Update", func(t testing.TB, k *kit, p part) error {
			r, a := k.inserted(t, p)
			b := k.itemOf(1, "b", p.name == "largeentities.Stream")
			b.Entry = a.Entry
			assert.Check(t, r.Upsert(t.Context(), b), clean(t.Context(), r))
			_, err := r.Update(t.Context(), r.KeyOf(a), func(v *item) error { v.Name, v.Team = "name c", "team c"; return nil })
			return errors.Join(err, clean(t.Context(), r))
		}},
		{"Repository.Upsert, DeleteUnconditional of an unreadable row", func(t testing.TB, k *kit, p part) error {
			r, a := k.inserted(t, p)
			key, ctx := r.KeyOf(a), t.Context()
			breaks := func(text string) error {
				_, err := r.Update(ctx, key, func(v *item) error { v.Brittle = brittle(text); return nil })
				broken.Store(text, true)
				if _, unreadable := r.Get(ctx, key); !errors.Is(unreadable, tables.ErrGarbled) {
					t.Errorf("the row is read: %v", unreadable)
				}
				return err
			}
			b := k.itemOf(1, "b", p.name == "largeentities.Stream")
			b.Entry = a.Entry
			if err := errors.Join(breaks(k.nameOf("first")+p.name), r.Upsert(ctx, b), clean(ctx, r)); err != nil {
				return err
			}
			got, err := r.Get(ctx, key)
			return errors.Join(err, sameItem(got, b), breaks(k.nameOf("second")+p.name), r.DeleteUnconditional(ctx, key), clean(ctx, r))
		}},
		{"Repository.Merge", func(t testing.TB, k *kit, p part) error {
			r, a := k.inserted(t, p)
			a.Name, a.Team = "name b", "team b"
			if err := r.Merge(t.Context(), a, "Name", "Team"); err != nil {
				return err
			}
			got, err := r.Get(t.Context(), r.KeyOf(a))
			return errors.Join(err, sameItem(got, a), clean(t.Context(), r))
		}},
		{"Repository.BulkNonAtomic", func(t testing.TB, k *kit, p part) error {
			r := assert.Must[*patterns.Repository[item]](t)(k.plain(k.makeParts(t, p)))
			streams := p.name == "largeentities.Stream"
			first, a, b := k.itemOf(1, "first", streams), k.itemOf(2, "a", streams), k.itemOf(3, "b", streams) // one partition
			assert.Check(t, k.prepareFor(t, r, a))
			if strings.HasSuffix(p.name, "Source") { // all items name one holder
				if _, err := r.BulkNonAtomic(t.Context(), one(a), nil); err != nil {
					return err
				}
				return clean(t.Context(), r)
			}
			assert.Check(t, r.Insert(t.Context(), first))
			all := func(yield func(*item, error) bool) {
				_ = yield(a, nil) && yield(k.itemOf(1, "first", streams), nil) && yield(b, nil)
			}
			report, err := r.BulkNonAtomic(t.Context(), all, &tables.BulkOptions{SkipExisting: true})
			if err != nil {
				return err
			}
			if report.Written != 2 || report.Unchanged != 1 {
				t.Errorf("%+v", report)
			}
			for _, v := range []*item{a, b} {
				got, err := r.Get(t.Context(), r.KeyOf(v))
				if err := errors.Join(err, sameItem(got, v)); err != nil {
					return err
				}
			}
			return errors.Join(clean(t.Context(), r), bulkVerbs(t, k, r, streams, a, b))
		}},
		{"Repository.StageInsert, StageReplace, StageDelete", func(t testing.TB, k *kit, p part) error {
			r := assert.Must[*patterns.Repository[item]](t)(k.plain(k.makeParts(t, p)))
			a := k.itemOf(1, "a", false)
			stages := []func(*tables.Transaction, *item){r.StageInsert, r.StageReplace, r.StageDelete}
			for i, stage := range stages {
				x := r.Table().NewTransaction()
				if i == 0 {
					assert.Check(t, k.prepareFor(t, r, a))
				}
				stage(x, a)
				if err := errors.Join(second(x.Commit(t.Context())), clean(t.Context(), r)); err != nil {
					return err
				}
			}
			return nil
		}},
		{"tables.Transaction of two repositories", twoRepositories},
		{"Repository.Verify, Repair, Rebuild", func(t testing.TB, k *kit, p part) error {
			r, _ := k.inserted(t, p)
			all, err := harness.Findings(t.Context(), r.Repair, &patterns.JobOptions{Lag: time.Millisecond})
			assert.Check(t, err)
			for _, found := range all {
				t.Errorf("repaired %v", found)
			}
			report, err := r.Rebuild(t.Context(), nil)
			if err == nil && report.Failed > 0 {
				err = fmt.Errorf("%+v", report)
			}
			return errors.Join(err, clean(t.Context(), r))
		}},
	}
}

// bulkVerbs changes two stored items in bulk with every verb but BulkInsert.
func bulkVerbs(t testing.TB, k *kit, r *patterns.Repository[item], streams bool, a, b *item) error {
	ctx := t.Context()
	for _, verb := range []tables.BulkVerb{tables.BulkReplace, tables.BulkMerge, tables.BulkUpsert, tables.BulkDelete} {
		read := [2]*item{}
		for i, v := range []*item{a, b} {
			got, err := r.Get(ctx, r.KeyOf(v))
			if err != nil {
				return err
			}
			if streams && verb != tables.BulkDelete {
				got = k.itemOf(2+i, "again", true)
				if verb != tables.BulkUpsert {
					return nil // a stream is read once: Replace of one is TestMatrix's
				}
				got.Entry = v.Entry
			} else if verb != tables.BulkDelete {
				got.Name, got.Team = fmt.Sprint("name ", verb, i), fmt.Sprint("team ", verb, i)
			}
			read[i] = got
		}
		options := &tables.BulkOptions{Verb: verb}
		if verb == tables.BulkMerge && r.Merge(ctx, read[0], "Name", "Team") != nil {
			continue // the pattern refuses every Merge
		}
		if verb == tables.BulkMerge {
			options.Properties = []string{"Name", "Team"}
		}
		report, err := r.BulkNonAtomic(ctx, func(yield func(*item, error) bool) { _ = yield(read[0], nil) && yield(read[1], nil) }, options)
		if err != nil {
			return fmt.Errorf("verb %d: %w", verb, err)
		}
		if report.Written+report.Deleted != 2 {
			t.Errorf("verb %d: %+v", verb, report)
		}
		for _, v := range read {
			got, err := r.Get(ctx, r.KeyOf(v))
			switch {
			case verb == tables.BulkDelete && !errors.Is(err, tables.ErrNotFound):
				t.Errorf("after a delete: %v", err)
			case verb != tables.BulkDelete:
				if err := errors.Join(err, sameItem(got, v)); err != nil {
					return fmt.Errorf("verb %d: %w", verb, err)
				}
			}
		}
		if err := clean(ctx, r); err != nil {
			return fmt.Errorf("verb %d: %w", verb, err)
		}
	}
	return nil
}

// others are what further packages do with repositories.
func others() []use {
	return []use{
		{"archive.Mover, ToRepository", func(t testing.TB, k *kit, p part) error {
			from, a := k.inserted(t, p)
			into := *k // with patterns of its own
			into.table, into.away = k.account.Table("Archive"), k.account.Table("ArchiveAway")
			assert.Check(t, into.table.Create(t.Context()), into.away.Create(t.Context()))
			into.sites, into.container = k.sitesOn(t, into.table), blobstorage.Container(k.account, "archived") // lists of one name in one container are one
			assert.Check(t, second(into.container.Create(t.Context(), nil)))
			to := assert.Must[*patterns.Repository[item]](t)(into.plain(into.makeParts(t, p)))
			assert.Check(t, into.prepareFor(t, to, a))
			mover := assert.Must[*archive.Mover[item]](t)(archive.New(k.queue, "archive", from, archive.ToRepository(to, nil), nil))
			assert.Check(t, mover.Move(t.Context(), a))
			drain(t, k.queue)
			got, err := to.Get(t.Context(), to.KeyOf(a))
			if _, gone := from.Get(t.Context(), from.KeyOf(a)); !errors.Is(gone, tables.ErrNotFound) {
				t.Errorf("in its old place: %v", gone)
			}
			return errors.Join(err, sameItem(got, a), clean(t.Context(), from), clean(t.Context(), to))
		}},
		{"archive.Mover, ToContainer", func(t testing.TB, k *kit, p part) error {
			from, a := k.inserted(t, p)
			mover, err := archive.New(k.queue, "archive", from, archive.ToContainer(k.container, func(v *item) string { return v.LogID }), nil)
			if err != nil {
				return err
			}
			assert.Check(t, mover.Move(t.Context(), a))
			drain(t, k.queue)
			got, err := archive.Read[item](t.Context(), k.container, a.LogID)
			return errors.Join(err, sameItem(got, a), clean(t.Context(), from))
		}},
		{"patterns.Async", func(t testing.TB, k *kit, p part) error {
			r, err := k.plain([]patterns.Pattern[item]{patterns.Async(k.makeParts(t, p)[0])})
			if err != nil {
				return err
			}
			a := k.itemOf(1, "a", p.name == "largeentities.Stream")
			assert.Check(t, k.prepareFor(t, r, a), r.Insert(t.Context(), a))
			drain(t, k.queue)
			assert.Check(t, clean(t.Context(), r), r.Delete(t.Context(), a))
			drain(t, k.queue)
			return clean(t.Context(), r)
		}},
		{"heterogeneous.Registry", registryUse},
		{"relationships.Pair", func(t testing.TB, k *kit, p part) error {
			r := assert.Must[*patterns.Repository[item]](t)(k.plain(k.makeParts(t, p)))
			pair, err := relationships.NewPair(r, k.sites, func(key tables.Key) tables.Key { return siteKey(key.Partition, "pair") })
			if err != nil {
				return err
			}
			a, b := k.itemOf(1, "a", false), &site{Partition: "Sales", Name: "pair"}
			assert.Check(t, k.prepareFor(t, r, a), pair.Insert(t.Context(), a, b), clean(t.Context(), r))
			return errors.Join(pair.Delete(t.Context(), a, b), clean(t.Context(), r))
		}},
		{"relationships.Reference, Cache", func(t testing.TB, k *kit, p part) error {
			r, a := k.inserted(t, p)
			cache := assert.Must[*relationships.Cache[item]](t)(relationships.NewCache(r, r.Query().Partition("Sales"), nil))
			defer cache.Close()
			for _, source := range []relationships.Source[item]{cache, relationships.FromRepository(r, 0)} {
				got, err := relationships.Reference[item, item]{Source: source, Key: relationships.SameKey(r)}.Get(t.Context(), a)
				assert.Check(t, err, sameItem(got, a))
			}
			return nil
		}},
		{"dataseries.Counter.StageAddOnce", func(t testing.TB, k *kit, p part) error {
			r := assert.Must[*patterns.Repository[item]](t)(k.plain(k.makeParts(t, p)))
			counter := assert.Must[*dataseries.Counter[int64]](t)(dataseries.NewCounter[int64](k.table, "Hour_", 24, nil))
			x, a, series := r.Table().NewTransaction(), k.itemOf(1, "a", false), tables.Key{Partition: "Sales", Row: "series"}
			assert.Check(t, k.prepareFor(t, r, a))
			r.StageInsert(x, a)
			assert.Check(t, second(counter.StageAddOnce(t.Context(), x, series, 3, 1, "insert 1")), second(x.Commit(t.Context())))
			got := assert.Must[*dataseries.Values[int64]](t)(counter.Read(t.Context(), series))
			if got.Slots[3].Value != 1 {
				return fmt.Errorf("the count is %+v", got)
			}
			return clean(t.Context(), r)
		}},
	}
}

// registryUse reads items among others, changes one without knowing its type, and deletes it.
func registryUse(t testing.TB, k *kit, p part) error {
	typed := storage()[len(storage())-1]
	chosen := []part{typed}
	if p.name != typed.name {
		chosen = append(chosen, p)
	}
	made := k.makeParts(t, chosen...)
	r := assert.Must[*patterns.Repository[item]](t)(k.plain(made))
	a := k.itemOf(1, "a", p.name == "largeentities.Stream")
	assert.Check(t, k.prepareFor(t, r, a), r.Insert(t.Context(), a))
	registry, err := heterogeneous.NewRegistry(k.table, made[0].(heterogeneous.AnyType))
	if err != nil {
		return err
	}
	items := 0
	for v, err := range registry.Query().Partition("Sales").All(t.Context()) {
		assert.Check(t, err)
		if v, is := v.(*item); is {
			items++
			assert.Check(t, sameItem(v, a), registry.Delete(t.Context(), v))
		}
	}
	if items != 1 {
		return fmt.Errorf("%d items are found", items)
	}
	return clean(t.Context(), r)
}

func one(v *item) iter.Seq2[*item, error] {
	return func(yield func(*item, error) bool) { yield(v, nil) }
}

func drain(t testing.TB, queue *eventual.Queue) {
	t.Helper()
	worker := assert.Must[*eventual.Worker](t)(eventual.NewWorker(queue, nil, nil))
	assert.Check(t, second(worker.Drain(t.Context())))
	if n := worker.Stats().Poisoned + worker.Stats().Failed; n != 0 {
		t.Fatalf("%d messages failed", n)
	}
}
