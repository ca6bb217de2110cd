package check

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// Key is the key of a row.
type Key struct{ Partition, Row string }

// Row is a row as it is stored.
type Row struct {
	Key  Key
	ETag string
	text map[string]string          // the properties that are Edm.String
	all  map[string]json.RawMessage // all properties, with the annotations of their types
}

// Text returns a property that is Edm.String; ok is false if there is none, or another type.
func (r Row) Text(name string) (text string, ok bool) {
	text, ok = r.text[name]
	return text, ok
}

// Raw returns a property's JSON and the annotation of its type; both are "" if the row does not have it.
func (r Row) Raw(name string) (value, annotation string) {
	_ = json.Unmarshal(r.all[name+typeSuffix], &annotation) // without an annotation, it stays ""
	return string(r.all[name]), annotation
}

const (
	typeSuffix   = "@odata.type"
	systemPrefix = "_tp"
)

// content returns the row's own properties as one text: those in keep, or all if keep is nil.
func (r Row) content(keep []string) string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(r.all)) {
		property := strings.TrimSuffix(name, typeSuffix)
		if strings.HasPrefix(property, systemPrefix) || keep != nil && !slices.Contains(keep, property) {
			continue
		}
		fmt.Fprintf(&b, "%s=%s\n", name, r.all[name])
	}
	return b.String()
}

// has reports whether the row has a property.
func (r Row) has(name string) bool { _, ok := r.all[name]; return ok }

// system returns a system property, "" if the row does not have it.
func (r Row) system(name string) string { return r.text[systemPrefix+name] }

// readTable reads all rows of a table.
func readTable(ctx context.Context, table *aztables.Client) ([]Row, error) {
	var rows []Row
	for pager := table.NewListEntitiesPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, body := range page.Entities {
			row, err := parseRow(body)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func parseRow(body []byte) (Row, error) {
	row := Row{text: map[string]string{}}
	if err := json.Unmarshal(body, &row.all); err != nil {
		return row, err
	}
	for name, raw := range row.all {
		var text string
		if json.Unmarshal(raw, &text) == nil && row.all[name+typeSuffix] == nil {
			row.text[name] = text
		}
	}
	row.Key, row.ETag = Key{row.text["PartitionKey"], row.text["RowKey"]}, row.text["odata.etag"]
	for name := range row.all {
		property := strings.TrimSuffix(name, typeSuffix)
		if strings.HasPrefix(name, "odata.") || property == "PartitionKey" || property == "RowKey" || property == "Timestamp" {
			delete(row.all, name)
		}
	}
	return row, nil
}
