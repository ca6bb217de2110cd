package highvolumedelete

import (
	"context"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
)

// List returns the names of the existing tables of periods, oldest first. Requests: 1 for each 1,000 tables.
func (s *Tables[T]) List(ctx context.Context) ([]string, error) {
	periods, err := s.list(ctx, nil, new(int))
	names := make([]string, len(periods))
	for i, p := range periods {
		names[i] = s.tableName(p)
	}
	return names, err
}

// list queries the tables by the beginning of their names; with below, only those of earlier periods.
func (s *Tables[T]) list(ctx context.Context, below *period, requests *int) ([]period, error) {
	prefix := s.schema.Name + layouts[s.schema.Unit][:1]
	to := prefix + ":" // the character after '9', so that all labels are below it
	if below != nil {
		to = s.tableName(*below)
	}
	filter := "TableName ge '" + prefix + "0' and TableName lt '" + to + "'" // letters and digits only, nothing to escape
	pager := s.account.TableService().NewListTablesPager(&aztables.ListTablesOptions{Filter: &filter})
	var all []period
	for pager.More() {
		*requests++
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, listFailure(err)
		}
		for _, t := range page.Tables {
			if t.Name == nil || len(*t.Name) < len(s.schema.Name) || !strings.EqualFold((*t.Name)[:len(s.schema.Name)], s.schema.Name) {
				continue // compare without case, since table names ignore case
			}
			if p, ok := s.calendar.parse(strings.ToUpper((*t.Name)[len(s.schema.Name):])); ok && (below == nil || p.before(*below)) {
				all = append(all, p)
			}
		}
	}
	slices.SortFunc(all, func(a, b period) int { return a.at.Compare(b.at) })
	return all, nil
}
