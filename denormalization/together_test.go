package denormalization_test

import (
	"cmp"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/denormalization"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// brand is a source with several holders, its products.
type brand struct {
	tables.Meta
	Code, Name string
	Products   int // named by Link.Holders: those with the numbers from 0
	Partitions int // of the products
}

// product is a holder. Its own Brand is for links with Find.
type product struct {
	tables.Meta
	Partition, ID, Sold int
	Brand               string
	BrandCode           string // the copy, with BrandName
	BrandName           string
}

func brandKey(code string) tables.Key {
	return tables.Key{Partition: code, Row: compoundkey.Join("brand", compoundkey.String(code))}
}

func productKey(partition, id int) tables.Key {
	return tables.Key{Partition: fmt.Sprint("products", partition), Row: compoundkey.Join("product", compoundkey.Int(id, 4))}
}

// brands is a world of brands and their products.
type brands struct {
	table, queue string
	find         bool // the link has Find, else Holders
	visibility   time.Duration
}

type brandProcess struct {
	brands   *patterns.Repository[brand]
	products *patterns.Repository[product]
	queue    *eventual.Queue
}

// link returns the link, with Find or with Holders.
func (w *brands) link() denormalization.Link[brand, product] {
	if w.find {
		return denormalization.Link[brand, product]{
			Properties: []string{"BrandName"},
			Find: func(products tables.Query[product], source tables.Key) tables.Query[product] {
				return products.AllowTableScan().Where(tables.Eq("Brand", source.Partition))
			},
			Copy: func(b *brand, p *product) {
				p.BrandName = ""
				if b != nil {
					p.BrandName = b.Name
				}
			},
			SourceOf: func(p *product) (tables.Key, bool) { return brandKey(p.Brand), p.Brand != "" },
		}
	}
	return denormalization.Link[brand, product]{
		Properties: []string{"BrandCode", "BrandName"},
		Holders: func(b *brand) (keys []tables.Key) {
			for id := range b.Products {
				keys = append(keys, productKey(id%b.Partitions, id))
			}
			return keys
		},
		Copy: func(b *brand, p *product) {
			if b == nil {
				b = &brand{}
			}
			p.BrandCode, p.BrandName = b.Code, b.Name
		},
		SourceOf: func(p *product) (tables.Key, bool) { return brandKey(p.BrandCode), p.BrandCode != "" },
	}
}

func (w *brands) start(s *storagetest.Service) (*brandProcess, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		return nil, err
	}
	queue, err := eventual.NewQueue(account, w.queue, &eventual.QueueOptions{VisibilityTimeout: cmp.Or(w.visibility, visibility)})
	if err != nil {
		return nil, err
	}
	p := &brandProcess{queue: queue}
	copies := denormalization.New("brand", w.link(), nil)
	p.products, err = patterns.NewRepository(harness.In(account.Table(w.table), queue), patterns.Schema[product]{Name: "products", Prefix: "product",
		Key: func(p *product) tables.Key { return productKey(p.Partition, p.ID) }}, copies.Holder())
	if err != nil {
		return nil, err
	}
	p.brands, err = patterns.NewRepository(harness.In(account.Table(w.table), queue), patterns.Schema[brand]{Name: "brands", Prefix: "brand",
		Key: func(b *brand) tables.Key { return brandKey(b.Code) }}, copies.Source())
	return p, err
}

// newBrands makes products of brand A, without those whose number missing says.
func newBrands(t testing.TB, s *storagetest.Service, find bool, products, partitions int, missing ...int) *brands {
	t.Helper()
	w := &brands{table: s.TableName(t), queue: s.QueueName(t), find: find}
	p := assert.Must[*brandProcess](t)(w.start(s))
	assert.Check(t, p.products.Table().Create(t.Context()), p.queue.Create(t.Context()))
	absent := map[int]bool{}
	for _, id := range missing {
		absent[id] = true
	}
	for id := range products {
		if absent[id] {
			continue
		}
		v := &product{Partition: id % partitions, ID: id}
		if w.find {
			v.Brand = "A"
		}
		assert.Check(t, p.products.Insert(t.Context(), v))
	}
	assert.Check(t, p.brands.Insert(t.Context(), &brand{Code: "A", Name: "first", Products: products, Partitions: partitions}))
	return w
}

// check counts the products with each copy, and the sales of all.
func (w *brands) check(ctx context.Context, s *storagetest.Service) (copies map[string]int, sold int, err error) {
	p, err := w.start(s)
	if err != nil {
		return nil, 0, err
	}
	copies = map[string]int{}
	for v, err := range p.products.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, 0, err
		}
		copies[v.BrandCode+" "+v.BrandName]++
		sold += v.Sold
	}
	return copies, sold, harness.Clean(ctx, p.brands.Verify, nil)
}

// TestRequestsOfManyHolders: a source is renamed that has 22 holders, in one partition or in four, some of which do not exist or change
// meanwhile. In one partition that takes at most 8 requests.
func TestRequestsOfManyHolders(t *testing.T) {
	for _, c := range []struct {
		name        string
		partitions  int
		missing     []int
		hot         bool
		another     bool // the holders have the copy of another source before
		named, find int  // requests
	}{
		{name: "one partition", partitions: 1, named: 1 + 2 + 1 + 1 + 1, find: 1 + 2 + 1 + 1 + 1},
		{name: "four partitions", partitions: 4, named: 1 + 2 + 4 + 4 + 1, find: 1 + 2 + 1 + 4 + 1},
		{name: "missing", partitions: 1, missing: []int{0, 7, 21}, named: 1 + 2 + 1 + 1 + 1, find: 1 + 2 + 1 + 1 + 1},
		// The transaction is refused, then written without the hot holder, which is read and written alone.
		{name: "hot", partitions: 1, hot: true, named: 1 + 2 + 1 + 1 + 1 + 3, find: 1 + 2 + 1 + 1 + 1 + 3},
		{name: "another source", partitions: 1, another: true, named: 1 + 2 + 1 + 2 + 1 + 1},
	} {
		for _, find := range []bool{false, true} {
			if c.another && find {
				continue
			}
			t.Run(fmt.Sprintf("%s/find=%v", c.name, find), func(t *testing.T) {
				ctx, s := t.Context(), storagetest.Open(t)
				w := newBrands(t, s, find, 22, c.partitions, c.missing...)
				counter := &storagetest.RequestCounter{}
				counted := *s
				own := assert.Must[*brandProcess](t)(w.start(s))
				sold := 0
				counted.ClientOptions.PerRetryPolicies = append(counted.ClientOptions.PerRetryPolicies, counter)
				use := &counted
				if c.hot {
					use, _ = counted.Faulty(storagetest.On(storagetest.Batch, storagetest.Once(storagetest.Always(storagetest.Before("a sale", func() {
						_, err := own.products.Update(ctx, productKey(0, 7), func(p *product) error { p.Sold++; return nil })
						assert.Check(t, err)
						sold++
					})))))
				}
				p := assert.Must[*brandProcess](t)(w.start(use))
				if c.another {
					assert.Check(t, own.brands.Insert(ctx, &brand{Code: "B", Name: "other", Products: 22, Partitions: 1}))
					copies, _, _ := w.check(ctx, s)
					if copies["B other"] != 22 {
						t.Fatalf("the copies are %v before", copies)
					}
				}
				b := assert.Must[*brand](t)(p.brands.Get(ctx, brandKey("A")))
				want, copied := c.named, "A second"
				if find {
					want, copied = c.find, " second"
				}
				counter.Reset()
				b.Name = "second"
				assert.Check(t, p.brands.Replace(ctx, b))
				if got := counter.Count() - counter.CountOf(storagetest.UpdateMessage); got != want {
					t.Errorf("%d requests, want %d: %v", got, want, counter.Kinds())
				}
				if c.hot && sold != 1 {
					t.Error("no holder has changed meanwhile")
				}
				if c.another {
					b := assert.Must[*brand](t)(own.brands.Get(ctx, brandKey("B")))
					b.Products = 0
					assert.Check(t, own.brands.Replace(ctx, b))
				}
				copies, n, err := w.check(ctx, s)
				assert.Check(t, err)
				if copies[copied] != 22-len(c.missing) || n != sold {
					t.Errorf("%v, %d sold and should be %d", copies, n, sold)
				}
			})
		}
	}
}

// TestSweepManyHolders breaks a change of a brand with six products of two partitions, which the brand names and then no longer names.
func TestSweepManyHolders(t *testing.T) {
	for _, find := range []bool{false, true} {
		t.Run(fmt.Sprint("find=", find), func(t *testing.T) {
			storagetest.Sweep(t, storagetest.SweepCase{Floor: map[bool]int{false: 300, true: 240}[find], Every: harness.SweepEvery(), World: func(t testing.TB, s *storagetest.Service) storagetest.World {
				w := newBrands(t, s, find, 6, 2, 4)
				var said harness.Attempts
				return storagetest.World{
					Operate: func(ctx context.Context, s *storagetest.Service) error {
						p, err := w.start(s)
						if err == nil {
							err = p.brands.Upsert(ctx, &brand{Code: "A", Name: "second", Products: 3, Partitions: 2})
						}
						said.Add(err)
						return err
					},
					Recover: func(ctx context.Context, s *storagetest.Service) error {
						return harness.Drain(ctx, s, visibility, func(s *storagetest.Service) (*eventual.Queue, error) {
							p, err := w.start(s)
							if err != nil {
								return nil, err
							}
							return p.queue, nil
						})
					},
					Check: func(ctx context.Context, s *storagetest.Service, _ storagetest.Ending) error {
						copies, _, err := w.check(ctx, s)
						if err != nil {
							return err
						}
						states := []string{"map[A first:5]", "map[ :2 A second:3]"}
						if find {
							states = []string{"map[ first:5]", "map[ second:5]"}
						}
						return said.Fits(fmt.Sprint(copies), states)
					},
				}
			}})
		})
	}
}

// succession is a walk in which brand B takes over both products of brand A, which are read and written together.
func succession(waive lease.Rules, writers ...[]*brand) func(testing.TB, *storagetest.Service) explore.InterleavingStage {
	return func(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
		w := &brands{table: "Brands", queue: "intents", visibility: walkVisibility}
		open := func(s *storagetest.Service) (*eventual.Queue, error) {
			p, err := w.start(s)
			if err != nil {
				return nil, err
			}
			return p.queue, nil
		}
		p := assert.Must[*brandProcess](t)(w.start(s))
		_, err := eventual.QueueService(p.queue.Account()).NewQueueClient("intents-poison").Create(t.Context(), nil)
		assert.Check(t, err, p.products.Table().Create(t.Context()), p.queue.Create(t.Context()))
		for id := range 2 {
			assert.Check(t, p.products.Insert(t.Context(), &product{ID: id}))
		}
		assert.Check(t, p.brands.Insert(t.Context(), &brand{Code: "A", Name: "first", Products: 2, Partitions: 1}))
		stage := explore.InterleavingStage{Queues: []string{"intents"}, Workers: []explore.Actor{walkWorker(waive, open)}}
		for _, changes := range writers {
			stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				for i := 0; err == nil && i < len(changes); i++ {
					b := *changes[i]
					err = p.brands.Upsert(lease.Waive(ctx, waive), &b)
				}
				return err
			})
		}
		stage.Check = func(ctx context.Context, s *storagetest.Service) error { return w.checkSuccession(ctx, s) }
		return stage
	}
}

// checkSuccession: each product has the copy of the brand that names it.
func (w *brands) checkSuccession(ctx context.Context, s *storagetest.Service) error {
	p, err := w.start(s)
	if err != nil {
		return err
	}
	want := map[int]string{}
	for b, err := range p.brands.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return err
		}
		for id := range b.Products {
			if want[id] != "" {
				return nil // a writer died between the two changes
			}
			want[id] = b.Code + b.Name
		}
	}
	for v, err := range p.products.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return err
		}
		if v.BrandCode+v.BrandName != want[v.ID] {
			return fmt.Errorf("product %d has %q %q and should have %q", v.ID, v.BrandCode, v.BrandName, want[v.ID])
		}
	}
	return nil
}

// TestWalkManyHolders walks through every interleaving of changes of two sources that name the same two holders.
func TestWalkManyHolders(t *testing.T) {
	named := func(code, name string, products int) *brand {
		return &brand{Code: code, Name: name, Products: products, Partitions: 1}
	}
	walk := func(name string, waive lease.Rules, crashes int, writers ...[]*brand) explore.Walk {
		x := explore.Interleavings(t, explore.InterleavingCase{Name: name, Stage: succession(waive, writers...), Crashes: crashes, Pause: walkVisibility + time.Second})
		t.Logf("%s, %d crashes: %d states, %d ends", name, crashes, x.States, x.Ends)
		return x
	}
	renamed := [][]*brand{{named("A", "second", 2)}, {named("A", "third", 2)}}
	for crashes := range 2 {
		if crashes > 0 && !harness.Thorough() {
			continue
		}
		walk("old one first", 0, crashes, []*brand{named("A", "second", 0), named("B", "other", 2)}).MustConverge(t)
		walk("new one first", 0, crashes, []*brand{named("B", "other", 2), named("A", "second", 0)}).MustConverge(t)
		if harness.Thorough() {
			walk("renamed twice", 0, crashes, renamed...).MustConverge(t)
			walk("both at once", 0, crashes, []*brand{named("A", "second", 0)}, []*brand{named("B", "other", 2)}).MustConverge(t)
		}
	}
	walk("without reading again", lease.Reread, 0, renamed...).MustDiverge(t)
}
