package patterns

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Explanation is what a change would write and send. String compares the sizes with the limits of the service; a change that
// exceeds one of them has no Explanation, because Explain returns ErrTooLarge.
type Explanation struct {
	Kind driver.ChangeKind
	Key  tables.Key
	Rows []ExplainedRow // the operations of the entity group transaction, in order; at most 100
	// Body is the size in bytes of the body of the request that writes Rows: at most 4 MiB
	// (tables.MaxTransactionSize) for several rows, 0 for a single delete.
	Body     int
	Outside  []string // the keys in other partitions that the change can touch, as "pattern: key"; Rows does not include their rows
	Requests []string // the requests of the change, in the order in which they are sent
}

// ExplainedRow is one operation of the transaction.
type ExplainedRow struct {
	Verb       string // "insert", "replace", "upsert", "merge", "delete"
	RowKey     string
	Pattern    string // "" for the entity's own rows; else the pattern's name
	Condition  string // "must not exist", "unchanged", "must exist", ""
	Properties int    // number of properties, with the library's own and without the key; at most 252 (tables.MaxProperties); 0 for a delete
	Size       int    // bytes of the sent properties, as the service counts them; at most 1 MiB (tables.MaxEntitySize); 0 for a delete
}

// explained prepares the change that Explain explains.
func explained(ctx context.Context, r *engine.Engine, op string, kind driver.ChangeKind, v any) (*engine.Work, error) {
	if r == nil {
		return nil, engine.ErrNil(op)
	}
	switch kind {
	case driver.ChangeInsert:
		return r.Inserting(op, v)
	case driver.ChangeReplace:
		return r.Replacing(op, v)
	case driver.ChangeDelete:
		return r.Deleting(ctx, op, v, nil)
	}
	return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("cannot explain a %v, since its rows depend on the stored entity; use ChangeReplace", kind))
}

// explain implements Repository.Explain.
func explain(ctx context.Context, r *engine.Engine, kind driver.ChangeKind, v any) (*Explanation, error) {
	const op = "Explain"
	ctx, reads := wire.CountReads(ctx)
	w, err := explained(ctx, r, op, kind, v)
	if err != nil {
		return nil, err
	}
	x := &Explanation{Kind: kind, Key: w.Change.Key}
	w.Begin()
	w.Change.DryRun = true
	set := r.NewSet(w)
	if err := set.Complete(ctx); err != nil {
		return nil, err
	}
	intent, err := set.Intent(ctx)
	if err != nil {
		return nil, err
	}
	x.Outside = intent.Outside()
	d, err := set.Draft(ctx)
	if err != nil {
		return nil, err
	}
	intended := len(x.Outside)
	copies, groups, err := set.Elsewhere(ctx)
	if err != nil {
		return nil, err
	}
	stored, removed := set.Spilled(ctx)
	x.Outside = slices.Sorted(slices.Values(slices.Concat(x.Outside, stored, copies)))
	if e := core.CheckWrites(d.Writes); e != nil {
		return nil, w.Located(e)
	}
	var marked []bool
	var e *entity.Error
	if x.Body, marked, e = r.Table.Measure(d.Writes); e != nil {
		return nil, w.Located(e)
	}
	for i := range d.Writes {
		x.Rows = append(x.Rows, explainRow(&d.Writes[i], marked[i]))
	}
	x.Requests = explainRequests(int(reads.Load()), len(d.Writes), intended, groups, len(stored), removed)
	return x, nil
}

// explainRequests lists the requests of a change in the order in which they are sent.
func explainRequests(reads, rows, intended, groups, stored, removed int) []string {
	write := "1 entity group transaction"
	if rows == 1 {
		write = "1 single write"
	}
	var requests []string
	if intended > 0 {
		requests = append(requests, "1 intent put")
	}
	if reads > 0 {
		requests = append(requests, fmt.Sprintf("reads to plan: %d", reads))
	}
	if stored > 0 {
		requests = append(requests, fmt.Sprintf("%d or more to store values outside", stored))
	}
	if groups > 0 {
		requests = append(requests, fmt.Sprintf("%d to mark copies, at the same time", groups))
	}
	requests = append(requests, write)
	if groups > 0 {
		requests = append(requests, fmt.Sprintf("%d to settle copies, in the background", groups))
	}
	if removed > 0 {
		requests = append(requests, fmt.Sprintf("%d or more to remove values outside, in the background", removed))
	}
	if intended > 0 {
		requests = append(requests, fmt.Sprintf("%d outside keys reconciled", intended), "1 read again", "1 intent deleted")
	}
	return requests
}

// explainRow explains a row. marked says that the row will also get a write ID, which w does not contain yet.
func explainRow(w *tablerow.Row, marked bool) ExplainedRow {
	size, _ := w.Check() // the caller has checked the rows, so Check returns no error
	row := ExplainedRow{RowKey: w.Key.Row, Pattern: w.Pattern, Size: size}
	if w.Verb != wire.VerbDelete {
		row.Properties = len(w.AppendOwn(w.Properties[:len(w.Properties):len(w.Properties)]))
	}
	if marked {
		row.Properties, row.Size = row.Properties+1, row.Size+tablerow.IDSize()
	}
	switch w.IfMatch {
	case "":
	case azcore.ETagAny:
		row.Condition = "must exist"
	default:
		row.Condition = "unchanged"
	}
	switch w.Verb {
	case wire.VerbInsert:
		row.Verb, row.Condition = "insert", "must not exist"
	case wire.VerbReplace:
		if row.Verb = "replace"; w.IfMatch == "" {
			row.Verb = "upsert"
		}
	case wire.VerbMerge:
		row.Verb = "merge"
	case wire.VerbDelete:
		row.Verb = "delete"
	}
	return row
}

// String formats the explanation as a table for people to read. Below the rows, it compares the sizes of the
// rows and of the request with the limits of the service.
func (x *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%q, %q)\n", x.Kind, x.Key.Partition, x.Key.Row)
	total, properties, largest := 0, 0, 0
	for _, row := range x.Rows {
		total, properties, largest = total+row.Size, max(properties, row.Properties), max(largest, row.Size)
		fmt.Fprintf(&b, "  %-8s %-40q %4d properties %8d bytes", row.Verb, row.RowKey, row.Properties, row.Size)
		if row.Condition != "" {
			fmt.Fprintf(&b, "  %s", row.Condition)
		}
		if row.Pattern != "" {
			fmt.Fprintf(&b, "  [%s]", row.Pattern)
		}
		b.WriteString("\n")
	}
	fmt.Fprintf(&b, "  total    %d bytes in %d of at most %d rows; the request's body has %d of at most %d bytes\n",
		total, len(x.Rows), tables.MaxTransactionOperations, x.Body, tables.MaxTransactionSize)
	fmt.Fprintf(&b, "  largest  %d of at most %d properties, %d of at most %d bytes of a row\n",
		properties, tables.MaxProperties, largest, tables.MaxEntitySize)
	for _, key := range x.Outside {
		fmt.Fprintf(&b, "  outside  %s\n", key)
	}
	for _, request := range x.Requests {
		fmt.Fprintf(&b, "  request  %s\n", request)
	}
	return b.String()
}
