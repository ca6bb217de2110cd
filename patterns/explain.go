package patterns

import (
	"context"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/patterns/internal/engine"
	"github.com/tablepatterns/tablepatterns/patterns/internal/explaining"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Explanation is what a change would write and send.
type Explanation struct {
	Kind     driver.ChangeKind
	Key      tables.Key
	Rows     []ExplainedRow // the entity group transaction, in order
	Outside  []string       // keys in other partitions, as "pattern: key"
	Requests []string       // in the order in which they are sent
}

// ExplainedRow is one operation of the transaction.
type ExplainedRow struct {
	Verb       string // "insert", "replace", "upsert", "merge", "delete"
	RowKey     string
	Pattern    string // "" for the entity's own rows; else the pattern's name
	Condition  string // "must not exist", "unchanged", "must exist", ""
	Properties int
	Size       int // bytes, by the service's formula
}

// explain is Repository.Explain.
func explain(ctx context.Context, r *engine.Engine, kind driver.ChangeKind, v any) (*Explanation, error) {
	const op = "Explain"
	ctx, reads := wire.CountReads(ctx)
	var w *engine.Work
	var err error
	switch kind {
	case driver.ChangeInsert:
		w, err = r.Inserting(op, v)
	case driver.ChangeReplace:
		w, err = r.Replacing(op, v)
	case driver.ChangeDelete:
		w, err = r.Deleting(ctx, op, v, nil)
	default:
		return nil, r.Invalid(op, tables.Key{}, fmt.Errorf("cannot explain a %v, since its rows depend on the stored entity; use ChangeReplace", kind))
	}
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
	x.Outside = explaining.Lines(intent)
	d, err := set.Draft(ctx)
	if err != nil {
		return nil, err
	}
	if e := tables.CheckWrites(pass, d.Writes); e != nil {
		return nil, r.Located(w, e)
	}
	if e := engine.Raw(r.Table).CheckSize(d.Writes); e != nil {
		return nil, r.Located(w, e)
	}
	for i := range d.Writes {
		x.Rows = append(x.Rows, explainRow(&d.Writes[i]))
	}
	x.Requests = explaining.Requests(int(reads.Load()), len(d.Writes), x.Outside, explaining.Reserved(r, w))
	return x, nil
}

func explainRow(w *tables.RawWrite) ExplainedRow {
	size, _ := w.Check() // checked above, so it returns no error
	row := ExplainedRow{RowKey: w.Key.Row, Pattern: engine.MeaningOf(w).Pattern, Size: size}
	if w.Verb != wire.VerbDelete {
		row.Properties = len(w.Properties) + len(w.System)
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

// String formats the explanation as a table for people to read.
func (x *Explanation) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s (%q, %q)\n", x.Kind, x.Key.Partition, x.Key.Row)
	for _, row := range x.Rows {
		fmt.Fprintf(&b, "  %-8s %-40q %4d properties %8d bytes", row.Verb, row.RowKey, row.Properties, row.Size)
		if row.Condition != "" {
			fmt.Fprintf(&b, "  %s", row.Condition)
		}
		if row.Pattern != "" {
			fmt.Fprintf(&b, "  [%s]", row.Pattern)
		}
		b.WriteString("\n")
	}
	for _, key := range x.Outside {
		fmt.Fprintf(&b, "  outside  %s\n", key)
	}
	for _, request := range x.Requests {
		fmt.Fprintf(&b, "  request  %s\n", request)
	}
	return b.String()
}
