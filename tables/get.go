package tables

import (
	"context"
	"errors"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/pace"
	"github.com/tablepatterns/tablepatterns/internal/rowreader"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// fetch makes the point read of one row. Requests: 1.
func (t *Table) fetch(ctx context.Context, op string, key Key, known map[string]int) (*RawRow, error) {
	if err := t.usable(); err != nil {
		return nil, Wiringf(op, "", "%w", err)
	}
	if err := rows.CheckKeys(key.Partition, key.Row); err != nil {
		return nil, Invalid(op, err)
	}
	if err := pace.Rows(ctx, 1); err != nil {
		return nil, failure(op, t.name, key, err)
	}
	ex := wire.Exchange{Entity: &wire.Address{Table: t.name, PartitionKey: key.Partition, RowKey: key.Row}}
	if _, err := t.client.GetEntity(wire.With(ctx, &ex), wire.StubKey, wire.StubKey, nil); err != nil {
		err = failure(op, t.name, key, err)
		t.failed(ctx, err)
		return nil, err
	}
	t.account.telemetry.Rows(ctx, t.name, 1, 1)
	answer, err := rowreader.New(ex.Answer, known, accessProperty).One()
	if err == nil && answer.Problem != nil {
		return nil, &Error{Op: op, Table: t.name, Key: key, Kind: ErrGarbled, OfRow: true, Err: answer.Problem}
	}
	if err != nil {
		return nil, failure(op, t.name, key, err)
	}
	row := new(RawRow)
	row.set(answer)
	if row.ETag == "" {
		row.ETag = azcore.ETag(ex.Header.Get("ETag"))
	}
	row.Answered, _ = http.ParseTime(ex.Header.Get("Date")) // without the header Answered stays zero; then the age of a reservation is unknown
	if row.Key != key {
		return nil, failure(op, t.name, key, rowreader.Garbled(errors.New("the response contains another row than the requested one; repeat the read, and check any proxy before the service")))
	}
	if !wire.IsETag(string(row.ETag)) {
		return nil, failure(op, t.name, key, rowreader.Garbled(rowreader.ErrNoETag))
	}
	return row, nil
}

// readRow reads a row for its system properties only.
func (t *Table) readRow(ctx context.Context, key Key) (*RawRow, error) {
	return t.fetch(ctx, "Get", key, map[string]int{})
}
