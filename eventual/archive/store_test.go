package archive_test

import (
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/eventual/archive"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestStoreRunMoves: a mover on a store's own queue needs no worker besides that of Store.Start, also if no repository has effects outside.
func TestStoreRunMoves(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
		store := assert.Must[*patterns.Store](t)(patterns.Open("clerks", &patterns.StoreOptions{Account: account}))
		schema := patterns.Schema[clerk]{Key: clerkKey, Prefix: "empid"}
		current := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(store.Table("Current"), schema))
		former := assert.Must[*patterns.Repository[clerk]](t)(patterns.NewRepository(store.Table("Former"), schema))
		mover := assert.Must[*archive.Mover[clerk]](t)(archive.New(eventual.Intents(store), "leave", current, archive.ToRepository(former, nil), nil))
		assert.Check(t, store.Create(t.Context()))
		clerk := june()
		assert.Check(t, errors.Join(current.Insert(t.Context(), clerk), mover.Move(t.Context(), clerk)))
		stop := assert.Must[func() error](t)(store.Start(t.Context()))
		time.Sleep(5 * time.Minute)
		assert.Check(t, stop())
		if _, err := former.Get(t.Context(), clerkKey(june())); err != nil {
			t.Errorf("the copy: %v", err)
		}
		if _, err := current.Get(t.Context(), clerkKey(june())); !errors.Is(err, tables.ErrNotFound) {
			t.Errorf("the entity: %v, want ErrNotFound", err)
		}
	})
}
