package storagetest_test

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// A signature for a range of keys, used on Azurite, which signs the range and does not hold it, and on the simulator, which
// does. Azurite takes no transactions under a table's signature at all.
func TestKeyRangesOfSignatures(t *testing.T) {
	t.Run("strict Azurite", func(t *testing.T) { keyRanges(t, sharedAzurite(t), false) })
	t.Run("simulator", func(t *testing.T) { keyRanges(t, storagetest.Simulator(t, nil), true) })
}

func keyRanges(t *testing.T, s *storagetest.Service, transactions bool) {
	ctx := t.Context()
	name := s.TableName(t)
	owner := tablesOf(t, s).NewClient(name)
	_, err := owner.CreateTable(ctx, nil)
	check(t, err)
	for _, pk := range []string{"HR", "Legal's", "Sales", "Tax"} {
		for _, rk := range []string{"1", "2", "3"} {
			_, err = owner.AddEntity(ctx, entityOf(pk, rk, ""), nil)
			check(t, err)
		}
	}
	table := ranged(t, s, name, "Legal's", "2", "Sales", "2")

	rows := func(filter string) string {
		var got []string
		pager := table.NewListEntitiesPager(&aztables.ListEntitiesOptions{Filter: &filter})
		for pager.More() {
			page := assert.Must[aztables.ListEntitiesResponse](t)(pager.NextPage(ctx))
			for _, e := range page.Entities {
				var entity aztables.EDMEntity
				check(t, entity.UnmarshalJSON(e))
				got = append(got, entity.PartitionKey+entity.RowKey)
			}
		}
		return strings.Join(got, " ")
	}
	assert.Equal(t, rows(""), "Legal's2 Legal's3 Sales1 Sales2", "all rows")
	assert.Equal(t, rows("RowKey eq '2' or RowKey eq '3'"), "Legal's2 Legal's3 Sales2", "filtered rows")
	check(t, assert.Err(table.GetEntity(ctx, "Sales", "2", nil)))
	_, err = table.GetEntity(ctx, "Sales", "3", nil)
	wantCode(t, err, 403, "AuthorizationFailure")
	_, err = table.DeleteEntity(ctx, "HR", "3", nil)
	wantCode(t, err, 403, "AuthorizationFailure")
	_, err = table.AddEntity(ctx, entityOf("Tax", "0", ""), nil)
	wantCode(t, err, 403, "AuthorizationFailure")
	_, err = table.AddEntity(ctx, entityOf("Sales", "0", ""), nil)
	check(t, err)
	batch := func(rows ...string) error {
		var actions []aztables.TransactionAction
		for _, rk := range rows {
			actions = append(actions, aztables.TransactionAction{ActionType: aztables.TransactionTypeInsertMerge, Entity: entityOf("Sales", rk, "")})
		}
		_, err := table.SubmitTransaction(ctx, actions, nil)
		return err
	}
	if transactions {
		check(t, batch("1", "2"))
	}
	assert.ErrorContains(t, batch("2", "3"), "AuthorizationFailure", "a transaction that leaves the range")
}

// ranged is a client for a range of a table's keys, by a signature that is put together here: the SDK signs the range and
// leaves it out of the address.
func ranged(t *testing.T, s *storagetest.Service, table, spk, srk, epk, erk string) *aztables.Client {
	t.Helper()
	credential := assert.Must[*aztables.SharedKeyCredential](t)(aztables.NewSharedKeyCredential(s.AccountName, s.AccountKey))
	sas, err := aztables.SASSignatureValues{
		Protocol: aztables.SASProtocolHTTPSandHTTP, ExpiryTime: time.Date(2100, 1, 1, 0, 0, 0, 0, time.UTC), TableName: table,
		Permissions:       aztables.SASPermissions{Read: true, Add: true, Update: true, Delete: true}.String(),
		StartPartitionKey: spk, StartRowKey: srk, EndPartitionKey: epk, EndRowKey: erk,
	}.Sign(credential)
	check(t, err)
	keys := url.Values{"spk": {spk}, "srk": {srk}, "epk": {epk}, "erk": {erk}}
	address := fmt.Sprintf("%s/?%s&%s", s.TableEndpoint, sas, keys.Encode())
	service, err := aztables.NewServiceClientWithNoCredential(address, &aztables.ClientOptions{ClientOptions: s.ClientOptions})
	check(t, err)
	return service.NewClient(table)
}
