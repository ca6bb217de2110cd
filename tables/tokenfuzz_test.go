package tables_test

import (
	"encoding/base64"
	"errors"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// FuzzPageToken: a token from outside is refused, or makes the query begin elsewhere; the query's own conditions hold in any case.
func FuzzPageToken(f *testing.F) {
	s := storagetest.Simulator(f, nil)
	a := assert.Must[*tables.Account](f)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	table := a.Table(s.TableName(f))
	assert.Check(f, table.Create(f.Context()))
	rows := table.Entities()
	for _, key := range []tables.Key{{Partition: "own", Row: "1"}, {Partition: "own", Row: "2"}, {Partition: "own", Row: "3"}, {Partition: "other", Row: "1"}, {Partition: "zzz", Row: "1"}} {
		assert.Check(f, rows.Insert(f.Context(), &tables.Entity{Key: key}))
	}
	q := rows.Query().Partition("own").PageSize(1)
	token := assert.Must[tables.Page[tables.Entity]](f)(q.Page(f.Context(), "")).Next
	f.Add(string(assert.Must[[]byte](f)(base64.RawURLEncoding.DecodeString(token))))
	f.Add(`{"v":1,"q":"0","p":"1!4!b3Ro","r":"1!4!MQ--"}`)
	f.Add(`{"v":1,"k":["other","1"]}`)
	f.Fuzz(func(t *testing.T, text string) {
		for _, token := range []string{text, base64.RawURLEncoding.EncodeToString([]byte(text))} {
			page, err := q.Page(t.Context(), token)
			if err != nil && !errors.Is(err, tables.ErrInvalid) {
				t.Errorf("%q: %v", token, err)
			}
			for _, e := range page.Items {
				assert.Equal(t, e.Key.Partition, "own", "%q leads to %v", token, e.Key)
			}
		}
	})
}
