package core

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/entity"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/rows"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Table is one table of an account. It is safe for concurrent use.
type Table struct {
	account *Account
	name    string
	client  *aztables.Client
	nameErr error
	owner   any // what made the handle, nil for Account.Table; see Internals.Owner
}

// Table returns a handle for the table. With an illegal name every operation returns ErrWiring. Requests: 0.
func (a *Account) Table(name string) *Table {
	if a == nil || a.tables == nil {
		return &Table{name: name}
	}
	return &Table{account: a, name: name, client: a.tables.NewClient(name), nameErr: a.checkName(name)}
}

// checkName returns an error for a name that the account's service does not accept for a table.
func (a *Account) checkName(name string) error {
	if a.cosmos {
		return rows.CheckCosmosTableName(name)
	}
	return rows.CheckTableName(name)
}

// Usable returns an error if no request can be made for the table.
func (t *Table) Usable() error {
	if t == nil || t.account == nil {
		return errNoAccount
	}
	return t.nameErr
}

// Name returns the table's name.
func (t *Table) Name() string { return t.name }

// Account returns the account the table belongs to.
func (t *Table) Account() *Account { return t.account }

// Client returns the SDK's client for the table.
func (t *Table) Client() *aztables.Client { return t.client }

// Create creates the table. It returns ErrExists if the table exists. For 40 s or more after a drop it returns ErrBeingDeleted, or
// ErrUnknownOutcome if an earlier attempt had no response and may still create the table. If a response is lost and the repeated request
// finds the table, Create returns nil, whoever created it.
//
// Requests: 1.
func (t *Table) Create(ctx context.Context) (err error) {
	if err := t.Usable(); err != nil {
		return errs.Wiringf("Create", "", "%w", err)
	}
	ctx, span := (&Source{Table: t}).begin(ctx, "Create")
	defer func() { span.End(err) }()
	var ex wire.Exchange
	_, err = t.client.CreateTable(wire.With(ctx, &ex), nil)
	return t.outcome("Create", err, &ex, entity.ErrExists)
}

// CreateIfMissing creates the table unless it exists. Requests: 1.
func (t *Table) CreateIfMissing(ctx context.Context) error {
	err := t.Create(ctx)
	if errors.Is(err, entity.ErrExists) {
		return nil
	}
	return err
}

// Drop deletes the table with everything in it. It returns ErrMissingResource if the table does not exist. Requests:
// 1.
func (t *Table) Drop(ctx context.Context) (err error) {
	if err := t.Usable(); err != nil {
		return errs.Wiringf("Drop", "", "%w", err)
	}
	ctx, span := (&Source{Table: t}).begin(ctx, "Drop")
	defer func() { span.End(err) }()
	var ex wire.Exchange
	_, err = t.client.Delete(wire.With(ctx, &ex), nil)
	return t.outcome("Drop", err, &ex, entity.ErrMissingResource, entity.ErrBeingDeleted)
}

// outcome returns the error of a request that creates or drops the table. If the response to an earlier attempt was lost, a refusal
// of one of the kinds in done may answer that attempt. It then counts as success, since a table carries no ID that would show
// who created or dropped it.
func (t *Table) outcome(op string, err error, ex *wire.Exchange, done ...error) error {
	if err == nil {
		return nil
	}
	e := writeFailure(err)
	e.Op, e.Table = op, t.name
	if errors.Is(e.Kind, entity.ErrNotFound) {
		e.Kind = entity.ErrMissingResource
	}
	switch {
	case !ex.Lost() && ex.EarlierUnknown() && slices.Contains(done, e.Kind):
		return nil
	case ex.Lost() || ex.EarlierUnknown() && !isFinal(e):
		e.Kind = entity.ErrUnknownOutcome
	}
	return e
}

// ID is equal for two handles exactly if they are of the same table.
func (t *Table) ID() string {
	if t.account == nil {
		return strings.ToLower(t.name)
	}
	return t.account.endpoints.Table + "\t" + strings.ToLower(t.name)
}

// Same reports whether two handles are of the same table. Names of tables ignore case.
func (t *Table) Same(other *Table) bool {
	if t.account == nil || other.account == nil { // the handle of a nil account
		return t.account == other.account && strings.EqualFold(t.name, other.name)
	}
	return strings.EqualFold(t.name, other.name) && t.account.endpoints.Table == other.account.endpoints.Table
}
