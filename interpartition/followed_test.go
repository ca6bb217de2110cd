package interpartition_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// pictured is an entity whose picture is in a blob.
type pictured struct {
	tables.Meta
	ID      int
	Email   string
	Picture []byte
}

func keyOfPictured(p *pictured) tables.Key {
	return tables.Key{Partition: "p", Row: compoundkey.Join("", compoundkey.Int(p.ID, 4))}
}

// openPictured makes a process that stores such entities.
func openPictured(t *testing.T, s *storagetest.Service) (*patterns.Repository[pictured], *interpartition.Unique[pictured, string]) {
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	store := assert.Must[*patterns.Store](t)(patterns.Open("pictured", &patterns.StoreOptions{Account: account}))
	byEmail := interpartition.NewUnique("email", func(p *pictured) string { return p.Email },
		&interpartition.Options[pictured]{Table: store.Table("Emails"), Project: []string{"Email", "Picture"}})
	picture := largeentities.NewProperty[pictured]("Picture", blobstorage.Open(store, "pictures"), &largeentities.Options{Threshold: -1})
	all := assert.Must[*patterns.Repository[pictured]](t)(patterns.NewRepository(store.Table("Pictured"), patterns.Schema[pictured]{Key: keyOfPictured}, byEmail, picture))
	assert.Check(t, store.Create(t.Context()))
	return all, byEmail
}

// TestReplacedWhileFollowed: a writer replaces the entity, and its blob, while a reader follows a marked copy to it. The reader reads the entity again,
// and does so a limited number of times.
func TestReplacedWhileFollowed(t *testing.T) {
	for name, c := range map[string]struct {
		times int
		want  error
	}{"once": {1, nil}, "again and again": {1000, tables.ErrConflict}} {
		t.Run(name, func(t *testing.T) {
			storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
				writer, _ := openPictured(t, s)
				v := &pictured{ID: 1, Email: annsEmail, Picture: []byte{0}}
				assert.Check(t, writer.Insert(t.Context(), v))
				marked := storagetest.NewToggle(storagetest.Before500)
				dying, _ := s.Faulty(storagetest.First(
					writes("Pictured", storagetest.Once(storagetest.Always(storagetest.Before("commit", func() { marked.Set(true) })))), writes("Emails", marked)))
				last, _ := openPictured(t, dying)
				_, err := last.Update(t.Context(), keyOfPictured(v), func(p *pictured) error { p.Picture = []byte{1}; return nil })
				assert.Check(t, err)

				reads := 0
				slow, _ := s.Faulty(storagetest.On(storagetest.GetBlob, storagetest.If(func(storagetest.Call) bool {
					reads++
					return reads%2 == 0 && reads <= 2*c.times // a reader loads the whole entity first, then the part of it that the copy has
				}, storagetest.Always(storagetest.Before("a concurrent writer", func() {
					_, err := writer.Update(context.Background(), keyOfPictured(v), func(p *pictured) error { p.Picture = append(p.Picture, 2); return nil })
					assert.Check(t, err)
					time.Sleep(time.Minute) // until the blob is deleted
				})))))
				_, byEmail := openPictured(t, slow)
				found, err := byEmail.Get(t.Context(), annsEmail)
				switch {
				case !errors.Is(err, c.want):
					t.Errorf("a read gives %v, want %v", err, c.want)
				case err == nil && !bytes.Equal(found.Picture, []byte{1, 2}):
					t.Errorf("found %v", found.Picture)
				}
				time.Sleep(time.Minute) // until all is settled
			})
		})
	}
}
