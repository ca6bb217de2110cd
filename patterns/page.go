package patterns

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/odata"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Page is one answer to a query. It may be empty and still have a Next.
type Page[T any] struct {
	Items []*T
	Next  string // continuation token for the next page, "" at the end
}

// Page fetches one page: the first for an empty token, else the one that the token continues. A token can be stored
// and used by another process, with an equal query of the same table; with another query it is ErrInvalid.
// Requests: 1.
func (q Query[T]) Page(ctx context.Context, token string) (Page[T], error) {
	p, err := q.Plan()
	if err != nil {
		return Page[T]{}, err
	}
	if err := q.refuseScan(p); err != nil {
		return Page[T]{}, err
	}
	c := continuation{Query: p.fingerprint(q.src.table, q.top), Left: q.top}
	if token != "" {
		if c, err = parseContinuation(token, c.Query); err != nil {
			return Page[T]{}, relabel("Page", q.src.table, err)
		}
	}
	if q.top > 0 && (c.Left <= 0 || c.Left > q.top) {
		return Page[T]{}, relabel("Page", q.src.table, invalidf("Page", "the continuation token says nowhere to go on"))
	}
	if p.empty {
		return Page[T]{}, nil
	}
	if p.point != nil && len(p.Select) == 0 && token == "" {
		return q.pointPage(ctx, *p.point)
	}
	return q.fetch(ctx, p, c)
}

func (q Query[T]) pointPage(ctx context.Context, key Key) (Page[T], error) {
	v, err := q.src.get(ctx, "Query", key)
	if errors.Is(err, ErrNotFound) {
		return Page[T]{}, nil
	}
	if err != nil {
		return Page[T]{}, err
	}
	return Page[T]{Items: []*T{v}}, nil
}

func (q Query[T]) fetch(ctx context.Context, p Plan, c continuation) (Page[T], error) {
	size := q.pageSize
	if size == 0 {
		size = MaxPageSize
	}
	if q.top > 0 && !q.src.skips {
		size = min(size, c.Left) // where rows are skipped, a page as small could be all skipped, again and again
	}
	answer, header, err := q.src.table.list(ctx, p, size, c)
	if err != nil {
		return Page[T]{}, err
	}
	page, last := Page[T]{}, (*Key)(nil)
	err = newRowReader(answer, q.src.known).page(func(row *storedRow) error {
		last = &Key{row.key.Partition, row.key.Row}
		v, err := q.src.load(ctx, row, len(p.Select) > 0)
		if err != nil {
			return q.src.decodeError("Query", row.key, err)
		}
		if v != nil {
			page.Items = append(page.Items, v)
		}
		return nil
	})
	if err != nil {
		if asError(err) == nil {
			err = failure("Query", q.src.table.name, Key{}, err)
		}
		return Page[T]{}, err
	}
	next := continuation{Query: c.Query, Partition: header.Get("X-Ms-Continuation-Nextpartitionkey"), Row: header.Get("X-Ms-Continuation-Nextrowkey")}
	if q.top > 0 {
		page.Items = page.Items[:min(len(page.Items), c.Left)]
		next.Left = c.Left - len(page.Items)
	}
	if next.Partition == "" && next.Row != "" {
		// Azurite, in the partition "": neither it nor anyone else can go on from that. The last key can.
		if next.Row, next.After = "", last; last == nil {
			return Page[T]{}, failure("Query", q.src.table.name, Key{}, garbledAnswer(errors.New("an empty page that goes on nowhere")))
		}
	}
	if (next.Partition != "" || next.After != nil) && (q.top == 0 || next.Left > 0) {
		page.Next = next.String()
	}
	return page, nil
}

// after limits a filter to the rows behind a key, in the service's order.
func after(filter string, key Key) string {
	rest, _ := odata.Append(nil, odata.AnyOf(
		keyComparison("PartitionKey", odata.Gt, key.Partition),
		odata.AllOf(keyComparison("PartitionKey", odata.Eq, key.Partition), keyComparison("RowKey", odata.Gt, key.Row)),
	)) // comparisons with strings have no error
	if filter == "" {
		return string(rest)
	}
	return "(" + filter + ") and (" + string(rest) + ")"
}

type headers interface{ Get(string) string }

// list sends one query.
func (t *Table) list(ctx context.Context, p Plan, size int, c continuation) ([]byte, headers, error) {
	top := int32(size)
	options := &aztables.ListEntitiesOptions{Top: &top}
	if c.After != nil {
		p.Filter = after(p.Filter, *c.After)
	}
	if p.Filter != "" {
		options.Filter = &p.Filter
	}
	if len(p.Select) > 0 {
		selected := strings.Join(p.Select, ",")
		options.Select = &selected
	}
	if c.Partition != "" {
		options.NextPartitionKey = &c.Partition
	}
	if c.Row != "" {
		options.NextRowKey = &c.Row
	}
	var ex wire.Exchange
	if _, err := t.client.NewListEntitiesPager(options).NextPage(wire.With(ctx, &ex)); err != nil {
		return nil, nil, failure("Query", t.name, Key{}, err)
	}
	return ex.Answer, ex.Header, nil
}

// continuation is where a query goes on. Its text is opaque to callers, and its version lets it change.
type continuation struct {
	Version   int    `json:"v"`
	Query     string `json:"q"`           // fingerprint of the query it belongs to
	Partition string `json:"p,omitempty"` // the service's own tokens
	Row       string `json:"r,omitempty"`
	After     *Key   `json:"k,omitempty"` // the last key, where the service's tokens are of no use
	Left      int    `json:"n,omitempty"` // entities that Top still allows
}

const continuationVersion = 1

func (c continuation) String() string {
	c.Version = continuationVersion
	text, _ := json.Marshal(c) // strings and an int cannot fail
	return base64.RawURLEncoding.EncodeToString(text)
}

func parseContinuation(token, query string) (continuation, error) {
	var c continuation
	text, err := base64.RawURLEncoding.DecodeString(token)
	if err != nil || json.Unmarshal(text, &c) != nil {
		return c, invalidf("Page", "%d characters are no continuation token", len(token))
	}
	if c.Version != continuationVersion {
		return c, invalidf("Page", "a continuation token of version %d, this build reads version %d", c.Version, continuationVersion)
	}
	if c.Query != query {
		return c, invalidf("Page", "the continuation token belongs to another query")
	}
	if c.Partition == "" && c.After == nil || c.Left < 0 {
		return c, invalidf("Page", "the continuation token says nowhere to go on")
	}
	return c, nil
}

// fingerprint tells queries apart by what decides their answer. Page size may change between pages.
func (p Plan) fingerprint(t *Table, top int) string {
	h := fnv.New64a()
	fmt.Fprintf(h, "%q %q %q %q %d", t.account.endpoints.Table, t.name, p.Filter, p.Select, top)
	return fmt.Sprintf("%016x", h.Sum64())
}
