package tables_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

func TestSDKDefectFailedTransactionSaysNothing(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	roundTrip(t, table, harness.Row("p", "there"))
	add := func(row string) aztables.TransactionAction {
		return aztables.TransactionAction{ActionType: aztables.TransactionTypeAdd, Entity: fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q}`, row)}
	}
	_, err := bare(t, table.Name()).SubmitTransaction(ctx, []aztables.TransactionAction{add("new"), add("there")}, nil)
	var response *azcore.ResponseError
	if !errors.As(err, &response) {
		t.Fatalf("the SDK's error is %v", err)
	}
	if response.StatusCode != http.StatusAccepted || response.ErrorCode != "" {
		fixed(t, fmt.Sprintf("a failed transaction is an error of status 202 without code: it is %d %q", response.StatusCode, response.ErrorCode))
	}
	if n := reflect.TypeFor[aztables.TransactionResponse]().NumField(); n != 0 {
		fixed(t, "a successful transaction returns no ETags: the response has fields now")
	}

	x := table.NewTransaction()
	x.Insert(harness.Row("p", "new"))
	x.Insert(harness.Row("p", "there"))
	_, err = x.Commit(ctx)
	e := harness.WantKind(t, err, tables.ErrExists)
	if e.Change != 2 || e.Code != "EntityAlreadyExists" || e.Key.Row != "there" {
		t.Errorf("our error is %v", e)
	}
	if !errors.As(err, &response) || response.StatusCode != http.StatusConflict || response.ErrorCode != "EntityAlreadyExists" {
		t.Errorf("the ResponseError in ours is %v", response)
	}
	x = table.NewTransaction()
	x.Insert(harness.Row("p", "a"))
	x.Insert(harness.Row("p", "b"))
	if etags := assert.Must[[]azcore.ETag](t)(x.Commit(ctx)); len(etags) != 2 || etags[0] == "" || etags[1] == "" {
		t.Errorf("our ETags are %q", etags)
	}
}

// lost is the transport that keeps nothing of the first n answers to requests that write.
func lost(n int64, inner policy.Transporter) harness.Transport {
	var writes atomic.Int64
	return func(req *http.Request) (*http.Response, error) {
		resp, err := inner.Do(req)
		if req.Method != http.MethodGet && err == nil && writes.Add(1) <= n {
			resp.Body.Close()
			return nil, errors.New("connection reset by peer")
		}
		return resp, err
	}
}

func TestSDKDefectLostAnswerTurnsIntoConflict(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	losing := func(o *azcore.ClientOptions) {
		o.Transport, o.Retry = lost(1, o.Transport), policy.RetryOptions{RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond}
	}
	_, err := bareWith(t, table.Name(), losing).AddEntity(ctx, []byte(`{"PartitionKey":"p","RowKey":"sdk"}`), nil)
	var response *azcore.ResponseError
	if !errors.As(err, &response) || response.StatusCode != http.StatusConflict {
		fixed(t, fmt.Sprintf("an insert that was applied, its answer lost, is repeated and ends in 409: it ends in %v", err))
	}

	ours := harness.AccountWith(t, losing)
	assert.NoError(t, ours.Table(table.Name()).Entities().Insert(ctx, harness.Row("p", "ours")), "our insert, which was applied")
	ours = harness.AccountWith(t, losing)
	harness.WantKind(t, ours.Table(table.Name()).Entities().Insert(ctx, harness.Row("p", "ours")), tables.ErrUnknownOutcome) // that row could be of this insert, replaced since
}

func TestSDKDefectTransactionUpdateUpserts(t *testing.T) {
	ctx := context.Background()
	table := harness.NewTable(t, harness.Account(t))
	client := bare(t, table.Name())
	for row, action := range map[string]aztables.TransactionType{"replace": aztables.TransactionTypeUpdateReplace, "merge": aztables.TransactionTypeUpdateMerge} {
		update := aztables.TransactionAction{ActionType: action, Entity: fmt.Appendf(nil, `{"PartitionKey":"p","RowKey":%q}`, row)}
		if _, err := client.SubmitTransaction(ctx, []aztables.TransactionAction{update}, nil); err != nil {
			fixed(t, fmt.Sprintf("%s of a row that is not there inserts it, in a transaction: it is %v", action, err))
			continue
		}
		assert.NoError(t, assert.Err(client.GetEntity(ctx, "p", row, nil)), "%s left no row", action)
	}

	bags := table.Entities()
	for _, update := range []func(*tables.Transaction, *tables.Entity) int{(*tables.Transaction).ReplaceUnconditional, (*tables.Transaction).MergeUnconditional} {
		x := table.NewTransaction()
		x.Upsert(harness.Row("p", "beside"))
		update(x, harness.Row("p", "absent"))
		_, err := x.Commit(ctx)
		if e := harness.WantKind(t, err, tables.ErrNotFound); e.Change != 2 || e.Key.Row != "absent" {
			t.Errorf("error %v", e)
		}
		harness.WantKind(t, assert.Err(bags.Get(ctx, tables.Key{Partition: "p", Row: "beside"})), tables.ErrNotFound)
	}
}

func TestSDKDefectSASRangeIsLeftOut(t *testing.T) {
	credential := assert.Must[*aztables.SharedKeyCredential](t)(aztables.NewSharedKeyCredential("contoso", "a2V5"))
	expiry := time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)
	values := aztables.SASSignatureValues{TableName: "Employees", Permissions: "r", ExpiryTime: expiry}
	open := assert.Must[string](t)(values.Sign(credential))
	values.StartPartitionKey, values.EndPartitionKey, values.StartRowKey, values.EndRowKey = "Sales", "Sales", "a", "b"
	narrow := assert.Must[string](t)(values.Sign(credential))
	if narrow == open {
		t.Error("the range is not even signed")
	}
	for _, name := range []string{"spk=", "srk=", "epk=", "erk="} {
		if strings.Contains(narrow, name) {
			fixed(t, "Sign leaves "+name+" out of the token")
		}
	}
	service := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientWithSharedKey("https://contoso.table.core.windows.net", credential, nil))
	address := assert.Must[string](t)(service.NewClient("Employees").GetTableSASURL(aztables.SASPermissions{Read: true}, expiry.AddDate(-1, 0, 0), expiry))
	if !strings.HasPrefix(address, "https://contoso.table.core.windows.netEmployees?") {
		fixed(t, "GetTableSASURL leaves out the slash before the table: "+strings.Split(address, "?")[0])
	}
}

// panics reports whether f does.
func panics(f func()) (did bool) {
	defer func() { did = recover() != nil }()
	f()
	return false
}

func TestSDKDefectPanicsAndOptions(t *testing.T) {
	ctx := context.Background()
	service := func(req *http.Request) (*http.Response, error) {
		return harness.Reply(req, http.StatusNoContent, "", "ETag", `W/"x"`), nil
	}
	client := bareInProcess(t, service)
	for what, call := range map[string]func(){
		"UpdateEntity": func() { client.UpdateEntity(ctx, []byte(`{"RowKey":"r"}`), nil) },
		"UpsertEntity": func() { client.UpsertEntity(ctx, []byte(`{"RowKey":"r"}`), nil) },
	} {
		if !panics(call) {
			fixed(t, what+" panics without PartitionKey")
		}
	}
	var update aztables.UpdateEntityOptions
	key := []byte(`{"PartitionKey":"p","RowKey":"r"}`)
	if _, err := client.UpdateEntity(ctx, key, &update); err == nil {
		fixed(t, "UpdateEntity refuses the zero value of its options, where nil works")
	}
	if update.IfMatch == nil {
		fixed(t, "UpdateEntity writes to its caller's options")
	}
	if _, err := client.UpsertEntity(ctx, key, &aztables.UpsertEntityOptions{}); err == nil {
		fixed(t, "UpsertEntity refuses the zero value of its options, where nil works")
	}

	type keyless struct{ Name string }
	view := assert.Must[*tables.Rows[keyless]](t)(tables.RowsOf[keyless](harness.InProcess(t, service).Table("Employees")))
	harness.WantKind(t, view.ReplaceUnconditional(ctx, &keyless{}), tables.ErrInvalid)
	harness.WantKind(t, view.Upsert(ctx, &keyless{}), tables.ErrInvalid)
	for _, options := range []*tables.AccountOptions{nil, {}} {
		if _, err := tables.NewAccountWithSharedKey(tables.AccountEndpoints("contoso"), "contoso", "a2V5", options); err != nil {
			t.Errorf("options %v: %v", options, err)
		}
	}
	// Room behind the slices' ends is where an append would write.
	watch := policy.Policy(harness.PerAttempt(func(*http.Request) {}))
	options := &tables.AccountOptions{ClientOptions: azcore.ClientOptions{
		PerCallPolicies: append(make([]policy.Policy, 0, 8), watch), PerRetryPolicies: append(make([]policy.Policy, 0, 8), watch)}}
	assert.Must[*tables.Account](t)(tables.NewAccountWithSharedKey(tables.AccountEndpoints("contoso"), "contoso", "a2V5", options))
	o := &options.ClientOptions
	if len(o.PerCallPolicies) != 1 || len(o.PerRetryPolicies) != 1 || o.PerCallPolicies[:2][1] != nil || o.PerRetryPolicies[:2][1] != nil || !reflect.ValueOf(o.TracingProvider).IsZero() {
		t.Error("NewAccountWithSharedKey wrote to its caller's options")
	}
}
