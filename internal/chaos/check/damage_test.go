package check_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// TestFindsWhatVerifyFinds: random rows and blobs are deleted, changed, copied and swapped behind the library's back. The checker and
// Verify find the same, and the same again after Repair.
func TestFindsWhatVerifyFinds(t *testing.T) {
	const rounds = 300
	kinds, left, total := map[string]int{}, map[string]int{}, 0
	for seed := range harness.Seeds(rounds) {
		w := newWorld(t, 6)
		v := &vandal{t: t, w: w, dice: rand.New(rand.NewPCG(uint64(seed), 0))}
		for range 1 + v.dice.IntN(4) {
			v.harm()
		}
		for _, step := range []string{"after the damage", "after a repair"} {
			found, err := w.check(t.Context())
			ok(t, err)
			of := left
			if step == "after the damage" {
				of, total = kinds, total+len(found)
			}
			for f := range found {
				of[strings.TrimSpace(f[:strings.Index(f+`"`, `"`)])]++
			}
			verified, err := w.verify(t.Context())
			ok(t, err)
			if diff := difference(found, verified); diff != "" {
				t.Fatalf("round %d, %s:%s\nthe damage was\n\t%s", seed, step, diff, strings.Join(v.did, "\n\t"))
			}
			ok(t, w.repair(t.Context()))
		}
	}
	t.Logf("%d rounds, %d findings, 0 differences: %v; after one Repair: %v", harness.Seeds(rounds), total, kinds, left)
}

func difference(checker, verify map[string]bool) string {
	var b strings.Builder
	for _, f := range slices.Sorted(maps.Keys(checker)) {
		if !verify[f] {
			fmt.Fprintf(&b, "\n\tonly the checker: %s", f)
		}
	}
	for _, f := range slices.Sorted(maps.Keys(verify)) {
		if !checker[f] {
			fmt.Fprintf(&b, "\n\tonly Verify: %s", f)
		}
	}
	return b.String()
}

func (w *world) repair(ctx context.Context) error {
	_, err := w.repo.Repair(lease.Waive(ctx, lease.Terms), &patterns.JobOptions{Lag: time.Nanosecond})
	return err
}

// vandal changes what is stored by the SDK alone.
type vandal struct {
	t    testing.TB
	w    *world
	dice *rand.Rand
	did  []string
}

// victim is a row as it is stored.
type victim struct {
	table *aztables.Client
	row   map[string]any
}

func (r victim) partition() string { return r.row["PartitionKey"].(string) }
func (r victim) key() string       { return r.row["RowKey"].(string) }

// victims are all rows, in a fixed order.
func (v *vandal) victims() (rows []victim) {
	for _, table := range []*aztables.Client{v.w.people, v.w.badges, v.w.team} {
		for pager := table.NewListEntitiesPager(nil); pager.More(); {
			page, err := pager.NextPage(v.t.Context())
			ok(v.t, err)
			for _, body := range page.Entities {
				row := map[string]any{}
				ok(v.t, json.Unmarshal(body, &row))
				maps.DeleteFunc(row, func(name string, _ any) bool {
					return strings.HasPrefix(name, "odata.") || strings.HasPrefix(name, "Timestamp")
				})
				rows = append(rows, victim{table, row})
			}
		}
	}
	return rows
}

func (v *vandal) note(format string, of ...any) { v.did = append(v.did, fmt.Sprintf(format, of...)) }

func (v *vandal) write(r victim) {
	body, err := json.Marshal(r.row)
	ok(v.t, err)
	_, err = r.table.UpsertEntity(v.t.Context(), body, &aztables.UpsertEntityOptions{UpdateMode: aztables.UpdateModeReplace})
	ok(v.t, err)
}

func (v *vandal) remove(r victim) {
	_, err := r.table.DeleteEntity(v.t.Context(), r.partition(), r.key(), nil)
	ok(v.t, err)
}

// harm does one thing to what is stored.
func (v *vandal) harm() {
	rows := v.victims()
	r := rows[v.dice.IntN(len(rows))]
	switch v.dice.IntN(8) {
	case 0:
		v.note("delete %q", []string{r.partition(), r.key()})
		v.remove(r)
	case 1, 2:
		v.change(r, rows)
	case 3:
		v.note("copy %q to a new key", []string{r.partition(), r.key()})
		r.row["RowKey"] = r.key() + "x"
		v.write(r)
	case 4:
		v.swap(r, rows)
	case 5:
		v.note("add a plain row %q", []string{r.partition(), r.key() + "y"})
		v.write(victim{r.table, map[string]any{"PartitionKey": r.partition(), "RowKey": r.key() + "y", "X": 1}})
	default:
		v.harmBlob()
	}
}

// change sets or removes a property.
func (v *vandal) change(r victim, rows []victim) {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(r.row)), func(name string) bool {
		return name == "PartitionKey" || name == "RowKey" || strings.HasSuffix(name, "@odata.type") || name == "_tpCopies"
	})
	if len(names) == 0 {
		return
	}
	name := names[v.dice.IntN(len(names))]
	other := rows[v.dice.IntN(len(rows))].row[name]
	system := strings.HasPrefix(name, "_tp")
	delete(r.row, name+"@odata.type")
	switch n := v.dice.IntN(4); {
	case n == 0:
		delete(r.row, name)
	case n == 1 && other != nil:
		r.row[name] = other
	case n == 2 && !system:
		r.row[name] = 7
	default:
		r.row[name] = "changed"
	}
	v.note("set %s of %q to %v", name, []string{r.partition(), r.key()}, r.row[name])
	v.write(r)
}

// swap has two rows of a table change places: their keys stay.
func (v *vandal) swap(r victim, rows []victim) {
	rows = slices.DeleteFunc(rows, func(o victim) bool { return o.table != r.table })
	other := rows[v.dice.IntN(len(rows))]
	if v.dice.IntN(2) == 0 { // of one kind
		alike := slices.DeleteFunc(slices.Clone(rows), func(o victim) bool { return (o.row["_tpPartition"] == nil) != (r.row["_tpPartition"] == nil) })
		other = alike[v.dice.IntN(len(alike))]
	}
	v.note("swap %q and %q", []string{r.partition(), r.key()}, []string{other.partition(), other.key()})
	a, b := maps.Clone(r.row), maps.Clone(other.row)
	a["PartitionKey"], a["RowKey"], b["PartitionKey"], b["RowKey"] = other.partition(), other.key(), r.partition(), r.key()
	v.write(victim{r.table, a})
	v.write(victim{r.table, b})
}

// harmBlob deletes, changes or copies a blob.
func (v *vandal) harmBlob() {
	var names []string
	for pager := v.w.photos.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(v.t.Context())
		ok(v.t, err)
		for _, item := range page.Segment.BlobItems {
			names = append(names, *item.Name)
		}
	}
	if len(names) == 0 {
		return
	}
	name := names[v.dice.IntN(len(names))]
	blob := v.w.photos.NewBlockBlobClient(name)
	properties, err := blob.GetProperties(v.t.Context(), nil)
	ok(v.t, err)
	switch v.dice.IntN(3) {
	case 0:
		v.note("delete blob %s", name)
		_, err := blob.Delete(v.t.Context(), nil)
		ok(v.t, err)
		return
	case 1:
		name += "x"
		blob = v.w.photos.NewBlockBlobClient(name)
	}
	v.note("write blob %s", name)
	_, err = blob.UploadBuffer(v.t.Context(), []byte(strings.Repeat("!", 40)), &blockblob.UploadBufferOptions{Metadata: properties.Metadata})
	ok(v.t, err)
}
