package encryption_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

var aKey = tables.Key{Partition: "Sales", Row: "empid_000223"}

// attached is an encryption of a repository of anything, for tests that call Store and Load themselves, many times. A
// resolver of its own chooses A to H.
type attached struct {
	*driver.Transform
	*encryption.Encryption[anything]
	*world
	table *tables.Table
}

func loader(t testing.TB, o *encryption.Options) attached {
	t.Helper()
	return loaderIn(t, worldOn(t, storagetest.Simulator(t, nil)), "Employees", o)
}

func loaderIn(t testing.TB, w *world, table string, o *encryption.Options, others ...patterns.Pattern[anything]) attached {
	t.Helper()
	options := encryption.Options{Resolver: func(_, _, property string) bool { return len(property) == 1 && property <= "H" }}
	if o != nil {
		resolver := options.Resolver
		options = *o
		options.Resolver = resolver
		if o.Resolver != nil {
			options.Resolver = o.Resolver
		}
	}
	a := attached{Encryption: encryption.New[anything]("encryption", w.registry, &options), world: w, table: w.account.Table(table)}
	r := assert.Must[*patterns.Repository[anything]](t)(patterns.NewRepository(a.table, patterns.Schema[anything]{
		Key: func(a *anything) tables.Key { return tables.Key{Partition: a.PartitionKey, Row: a.RowKey} },
	}, append([]patterns.Pattern[anything]{a.Encryption}, others...)...))
	a.Transform = transformOf(r)
	return a
}

// transformOf is the transform of a repository's encryption.
func transformOf[T any](r *patterns.Repository[T]) *driver.Transform {
	for _, p := range patterns.HostOf(r).Patterns() {
		if p.Name == "encryption" {
			return p.Transform
		}
	}
	return nil
}

// stored encrypts properties for a key.
func (a attached) stored(t testing.TB, key tables.Key, p ...tables.Property) tables.Properties {
	t.Helper()
	return assert.Must[tables.Properties](t)(a.Store(t.Context(), &driver.Change{Key: key}, p))
}

func text(name, s string) tables.Property {
	return tables.Property{Name: name, Value: tables.String(s)}
}

// allOf and partOf are readings of a whole row, and of some of its properties.
func allOf(key tables.Key) driver.Reading  { return driver.Reading{Key: key} }
func partOf(key tables.Key) driver.Reading { return driver.Reading{Key: key, Partial: true} }
