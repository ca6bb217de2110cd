package patterns_test

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/intents"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// The kinds of contribution, each as the least pattern that shows that the repository carries it. The real ones
// are packages of their own.

// sealed encrypts one property.
type sealed struct {
	property string
	key      [32]byte
	table    string
}

func (s *sealed) Attach(host driver.Host, _ *person) (driver.Implementation, error) {
	s.table = host.Table().Name()
	return driver.Implementation{Name: "sealed", Transform: &driver.Transform{
		Stage: driver.StageEncrypt, Store: s.store, Load: s.load, RefusesMerge: errors.New("sealed with the others"),
		Filterable: func(property string) bool { return property != s.property },
	}}, nil
}
func (s *sealed) aead() cipher.AEAD { return must2(cipher.NewGCM(must2(aes.NewCipher(s.key[:])))) }
func (s *sealed) additional(key tables.Key) []byte {
	return fmt.Appendf(nil, "%q %q %q %q", s.table, key.Partition, key.Row, s.property)
}

func must2[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func (s *sealed) store(_ context.Context, c *driver.Change, p tables.Properties) (tables.Properties, error) {
	n, ok := p.Get(s.property).Int()
	if !ok {
		return p, nil
	}
	nonce := make([]byte, s.aead().NonceSize())
	rand.Read(nonce)
	out := slices.Clone(p)
	out.Set(s.property, tables.Binary(s.aead().Seal(nonce, nonce, fmt.Append(nil, n), s.additional(c.Key))))
	return out, nil
}

func (s *sealed) load(_ context.Context, of driver.Reading, p tables.Properties) (tables.Properties, error) {
	b, ok := p.Get(s.property).Bytes()
	if !ok {
		return p, nil
	}
	size := s.aead().NonceSize()
	if len(b) < size {
		return nil, errors.New("it is not sealed")
	}
	plain, err := s.aead().Open(nil, b[:size], b[size:], s.additional(of.Key))
	if err != nil {
		return nil, errors.New("it does not open")
	}
	var n int64
	if _, err := fmt.Sscan(string(plain), &n); err != nil {
		return nil, err
	}
	p.Set(s.property, tables.Int64(n))
	return p, nil
}

// spilled keeps a long property in a blob.
type spilled struct {
	property string
	over     int
	blobs    *container.Client
}

func (s *spilled) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "spilled", Prior: s.prior, Transform: &driver.Transform{
		Stage: driver.StageSpill, Store: s.store, Load: s.load, After: s.after, RefusesMerge: errors.New("a merge would leave the pointer"),
		Filterable: func(property string) bool { return property != s.property },
	}}, nil
}
func (s *spilled) pointer() string { return s.property + "Blob" }

func (s *spilled) prior(_ any, stored tables.Properties) ([]string, error) {
	if name, ok := stored.Get(s.pointer()).Text(); ok {
		return []string{name}, nil
	}
	return nil, nil
}

func (s *spilled) store(ctx context.Context, c *driver.Change, p tables.Properties) (tables.Properties, error) {
	value, ok := p.Get(s.property).Bytes()
	if !ok || len(value) <= s.over {
		return p, nil
	}
	name := "photo/" + rand.Text()
	if c.StoresOutside(name); !c.DryRun {
		if _, err := s.blobs.NewBlockBlobClient(name).UploadBuffer(ctx, value, nil); err != nil {
			return nil, err
		}
	}
	out := slices.Clone(p)
	out.Delete(s.property)
	out.Set(s.pointer(), tables.String(name))
	return out, nil
}

func (s *spilled) load(ctx context.Context, _ driver.Reading, p tables.Properties) (tables.Properties, error) {
	name, ok := p.Get(s.pointer()).Text()
	if !ok {
		return p, nil
	}
	answer, err := s.blobs.NewBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{})
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var content bytes.Buffer
	if _, err := content.ReadFrom(answer.Body); err != nil {
		return nil, err
	}
	p.Delete(s.pointer())
	p.Set(s.property, tables.Binary(content.Bytes()))
	return p, nil
}

func (s *spilled) after(_ context.Context, c *driver.Change, committed bool) func(context.Context) {
	gone := c.Prior
	if !committed {
		gone, _ = s.prior(nil, c.Stored)
	}
	if len(gone) == 0 {
		return nil
	}
	return func(ctx context.Context) { _, _ = s.blobs.NewBlobClient(gone[0]).Delete(ctx, nil) }
}

// halved puts the second half of the properties into a second row.
type halved struct{}

func (halved) Attach(driver.Host, *person) (driver.Implementation, error) {
	return driver.Implementation{Name: "halved", Layout: &driver.Layout{
		Split: halve, Join: joinHalves,
		Versions:   func(directory string) ([]string, error) { return []string{directory}, nil },
		Rows:       func(string, []string) ([]int, error) { return []int{0}, nil },
		Filterable: func(string) bool { return false },
	}}, nil
}

func halve(p tables.Properties) (*driver.LaidOut, error) {
	if len(p) < 2 {
		return &driver.LaidOut{First: p}, nil
	}
	half := len(p) / 2
	version := halfVersion(p[half:])
	return &driver.LaidOut{First: p[:half], Directory: version, Further: []driver.FurtherRow{{Properties: p[half:], Version: version}}}, nil
}

// halfVersion digests properties, which come back in any order.
func halfVersion(p tables.Properties) string {
	p = slices.Clone(p)
	slices.SortFunc(p, func(a, b tables.Property) int { return strings.Compare(a.Name, b.Name) })
	return fmt.Sprintf("%x", sha256.Sum256(fmt.Append(nil, p)))
}

func joinHalves(directory string, first tables.Properties, further map[int]tables.Properties) (tables.Properties, error) {
	if halfVersion(further[0]) != directory {
		return nil, fmt.Errorf("the halves are of two versions: %w", driver.ErrOutdated)
	}
	return append(first, further[0]...), nil
}

// tally counts the entities of a partition in a row that all of them share.
type tally struct{ table *tables.Table }

func (x *tally) Attach(host driver.Host, _ *person) (driver.Implementation, error) {
	x.table = host.Table()
	return driver.Implementation{Name: "tally", Rows: x.rows}, nil
}

func (x *tally) rows(ctx context.Context, changes []*driver.Change) ([]driver.RowOperation, error) {
	step := int64(0)
	for _, c := range changes {
		step += map[driver.ChangeKind]int64{driver.ChangeInsert: 1, driver.ChangeDelete: -1}[c.Kind]
	}
	if step == 0 {
		return nil, nil
	}
	key := tables.Key{Partition: changes[0].Key.Partition, Row: "tally"}
	row, err := x.table.Entities().Get(ctx, key)
	if errors.Is(err, tables.ErrNotFound) {
		row := &tables.Entity{Key: key, Properties: tables.Properties{{Name: "N", Value: tables.Int64(step)}}}
		return []driver.RowOperation{{Verb: driver.InsertRow, Row: row}}, nil
	}
	if err != nil {
		return nil, err
	}
	n, _ := row.Get("N").Int()
	row.Set("N", tables.Int64(n+step))
	return []driver.RowOperation{{Verb: driver.ReplaceRow, Row: row}}, nil
}

// intentLog is an intents.Runner in memory. die names a step before which the process dies.
type intentLog struct {
	mu        sync.Mutex
	open      []intents.Intent
	die       string
	reconcile func(context.Context, intents.Intent) error // of the repository
}

var errDied = errors.New("the process died")

// Register implements intents.Runner: the tests carry on with open intents themselves.
func (l *intentLog) Register(_ string, reconcile func(context.Context, intents.Intent) error) error {
	l.reconcile = reconcile
	return nil
}

func (l *intentLog) Run(ctx context.Context, intent intents.Intent, commit func(context.Context) error, apply func(context.Context) (intents.Rest, error)) error {
	reconcile := harness.ApplyAndClose(apply)
	l.mu.Lock()
	l.open = append(l.open, intent)
	l.mu.Unlock()
	if l.die == "commit" {
		return errDied
	}
	if err := commit(ctx); err != nil {
		return errors.Join(err, reconcile(ctx))
	}
	if l.die == "reconcile" {
		return errDied
	}
	if reconcile(ctx) != nil {
		return nil // the change is made, and the intent is still there
	}
	if l.die == "forget" {
		return errDied
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open = slices.DeleteFunc(l.open, func(other intents.Intent) bool { return fmt.Sprint(other) == fmt.Sprint(intent) })
	return nil
}
