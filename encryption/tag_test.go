package encryption_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type inner struct {
	Secret string `encrypt:"true"`
	Open   string
}

type outerHides struct {
	inner
	Secret string // hides the one with the tag, and has none
}

type self struct {
	Next *self `table:"-"`
	Name string
}

type (
	flat struct { // the tag of an embedded struct's field counts
		tables.Meta
		inner
		Renamed string `table:"Other" encrypt:"true"`
		Not     string `encrypt:"false"`
		Self    self   `table:",json"`
	}
	ofKey struct {
		tables.Meta
		RowKey string `encrypt:"true"`
	}
	ofTime struct {
		tables.Meta
		Timestamp time.Time `encrypt:"true"`
	}
	leftOut struct {
		tables.Meta
		Secret string `table:"-" encrypt:"true"`
	}
	unexported struct {
		tables.Meta
		secret string `encrypt:"true"`
	}
	ofRest struct {
		tables.Meta
		Rest map[string]tables.Value `table:",rest" encrypt:"true"`
	}
	misspelt struct {
		tables.Meta
		Secret string `encrypt:"yes"`
	}
	whole struct {
		tables.Meta
		Inner inner `table:",json"`
	}
	wholeSlice struct {
		tables.Meta
		Inners []*inner `table:",json"`
	}
	embeddedWhole struct {
		tables.Meta
		inner `table:"Inner,json"`
	}
	hides struct {
		tables.Meta
		outerHides
		Other string `encrypt:"true"`
	}
	ofSeal struct {
		tables.Meta
		Seal   []byte `table:"_encryptionSeal"`
		Secret string `encrypt:"true"`
	}
)

func (unexported) use() string { return unexported{}.secret }

func attachTo[T any](t *testing.T, o *encryption.Options) (*patterns.Repository[T], error) {
	t.Helper()
	w := worldOn(t, storagetest.Simulator(t, nil))
	assert.Check(t, w.account.Table("Things").Create(t.Context()))
	return patterns.NewRepository(w.account.Table("Things"), patterns.Schema[T]{Key: func(*T) tables.Key { return aKey }}, encryption.New[T]("encryption", w.registry, o))
}

// TestTagsWithoutEffect: a tag that would leave in plain what was meant to be secret is refused when it is declared.
func TestTagsWithoutEffect(t *testing.T) {
	refused := map[string]error{
		"a row key":                assert.Err(attachTo[ofKey](t, nil)),
		"a timestamp":              assert.Err(attachTo[ofTime](t, nil)),
		"a field that is left out": assert.Err(attachTo[leftOut](t, nil)),
		"an unexported field":      assert.Err(attachTo[unexported](t, nil)),
		"the rest":                 assert.Err(attachTo[ofRest](t, nil)),
		"another word":             assert.Err(attachTo[misspelt](t, nil)),
		"a field within JSON":      assert.Err(attachTo[whole](t, nil)),
		"one within a list":        assert.Err(attachTo[wholeSlice](t, nil)),
		"one within an embedded":   assert.Err(attachTo[embeddedWhole](t, nil)),
		"one that is hidden":       assert.Err(attachTo[hides](t, nil)),
		"the seal's name":          assert.Err(attachTo[ofSeal](t, nil)),
		"a tag and Plain":          assert.Err(attachTo[flat](t, &encryption.Options{Plain: []string{"Other"}})),
		"a tag and Unsigned":       assert.Err(attachTo[flat](t, &encryption.Options{Unsigned: []string{"Other"}})),
	}
	for what, err := range refused {
		assert.ErrorIs(t, err, tables.ErrWiring, what)
	}
	_ = unexported{}.use()
	r := assert.Must[*patterns.Repository[flat]](t)(attachTo[flat](t, nil))
	assert.Check(t, r.Insert(t.Context(), &flat{inner: inner{Secret: "s", Open: "o"}, Renamed: "r", Not: "n"}))
	stored := bag(t, r.Table(), aKey)
	for name, want := range map[string]tables.Type{"Secret": tables.TypeBinary, "Other": tables.TypeBinary, "Open": tables.TypeString, "Not": tables.TypeString, "Self": tables.TypeString} {
		assert.Equal(t, stored.Get(name).Type(), want, "the stored type of %s", name)
	}
	read := assert.Must[*flat](t)(r.Get(t.Context(), aKey))
	if read.Secret != "s" || read.Renamed != "r" {
		t.Errorf("read %+v", read)
	}
}

// TestOneErrorForAll: through a repository, whatever was done to a row has the same text for the same verb; a broken row is
// not taken for one that is not there, and what was read in part is not written back.
func TestOneErrorForAll(t *testing.T) {
	w := newWorld(t)
	ctx := t.Context()
	r := w.employees(t, w.s.TableName(t), nil)
	e := june("Sales", 1)
	assert.Check(t, r.Insert(ctx, e))
	whole := bag(t, r.Table(), employeeKey("Sales", 1))
	texts := map[string]bool{}
	for _, at := range []int{0, 3, 4, 5, 7, 10, 30, 60, 88, 100} {
		for _, name := range []string{"Number", "Salary", encryption.SealProperty} {
			b, _ := whole.Get(name).Bytes()
			if at >= len(b) {
				continue
			}
			b[at] ^= 0x40
			put(t, r.Table(), &tables.Entity{Key: whole.Key, Properties: with(whole.Properties, name, tables.Binary(b))})
			_, err := r.Get(ctx, employeeKey("Sales", 1))
			texts[refusedBy(t, err, name)] = true
			_, err = r.Update(ctx, employeeKey("Sales", 1), func(*employee) error { t.Error("a broken entity is handed out"); return nil })
			refusedBy(t, err, name)
			if errors.Is(err, tables.ErrNotFound) || errors.Is(err, tables.ErrInvalid) {
				t.Errorf("%v", err)
			}
		}
	}
	if len(texts) != 1 {
		t.Errorf("%d texts: %v", len(texts), texts)
	}
	for text := range texts {
		t.Log(text)
	}
	put(t, r.Table(), whole)
	part := assert.Must[*employee](t)(r.Query().Partition("Sales").Select("Number").First(ctx))
	assert.ErrorIs(t, r.Replace(ctx, part), tables.ErrInvalid, "a write of what was read in part")
}

// TestForgottenPattern: a repository of a type with the tag and without the pattern would store in clear what is secret.
func TestForgottenPattern(t *testing.T) {
	counter := &storagetest.RequestCounter{}
	s := *storagetest.Simulator(t, nil)
	s.ClientOptions.PerRetryPolicies = append(s.ClientOptions.PerRetryPolicies, counter)
	_, err := patterns.NewRepository(open(t, &s).Table("Employees"), patterns.Schema[flat]{Key: func(*flat) tables.Key { return tables.Key{} }})
	if !errors.Is(err, tables.ErrWiring) || !strings.Contains(err.Error(), "Secret") || counter.Count() != 0 {
		t.Errorf("after %d requests: %v", counter.Count(), err)
	}
}
