package largeentities_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// keys are data keys in a storage account of their own, so that the faults and counts of a test are those of its blobs.
type keys struct{ registry *encryption.Registry }

func newKeys(t testing.TB) keys {
	t.Helper()
	s := storagetest.Simulator(t, nil)
	account := assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions}))
	wrapper := assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey("local", make([]byte, 32)))
	table := account.Table("keys")
	ok(t, table.Create(t.Context()))
	k := keys{assert.Must[*encryption.Registry](t)(encryption.NewRegistry(table, wrapper, nil))}
	assert.Must[encryption.DataKeyID](t)(k.registry.CreateDataKey(t.Context()))
	return k
}

func (k keys) stream(t testing.TB, scope string) encryption.Stream {
	t.Helper()
	return assert.Must[encryption.Stream](t)(encryption.NewStream(k.registry, &encryption.StreamOptions{Scope: scope}))
}

// sealedOptions are those of a property with a sealer: the tests' own threshold would leave values in clear.
func (k keys) options(t testing.TB) largeentities.Options {
	return largeentities.Options{Threshold: -1, Sealer: k.stream(t, "")}
}

// rowOf is the row of an employee as it is stored.
func rowOf(t testing.TB, p *process, w *world, id int) *tables.Entity {
	t.Helper()
	return assert.Must[*tables.Entity](t)(p.account.Table(w.table).Entities().Get(t.Context(), at(id)))
}

// pointerOf is the stored pointer of a property, in its five fields.
func pointerOf(t testing.TB, p *process, w *world, id int, property string) []string {
	t.Helper()
	v := rowOf(t, p, w, id).Properties.Get(property)
	text, isText := v.Text()
	if b, isBinary := v.Bytes(); isBinary && !isText {
		text = string(b)
	}
	fields := strings.SplitN(text, " ", 5)
	if len(fields) != 5 {
		t.Fatalf("%s of %d is stored as %q", property, id, text)
	}
	return fields
}

func blobOf(t testing.TB, p *process, name string) []byte {
	t.Helper()
	answer, err := p.blobs.NewBlobClient(name).DownloadStream(t.Context(), nil)
	ok(t, err)
	defer answer.Body.Close()
	return assert.Must[[]byte](t)(io.ReadAll(answer.Body))
}

// TestSealed: values of every kind come back, from the entity and from its copies; nothing of them is in row or blob, not
// even whether two are equal.
func TestSealed(t *testing.T) {
	ctx, s, k := t.Context(), storagetest.Open(t), newKeys(t)
	w := (&world{inIndex: true, outIndex: true, options: k.options(t)}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	secret := bytes.Repeat([]byte("top secret "), 20_000)
	sum := sha256.Sum256(secret)
	contents := map[string]bool{}
	for id := 1; id <= 2; id++ {
		e := with(id)
		e.Email = "june" + string(rune('0'+id))
		e.Photo, e.CV = secret, string(secret)
		e.Video = largeentities.NewStreamReader(bytes.NewReader(secret), &largeentities.StreamOptions{ContentType: "video/mp4", Length: int64(len(secret))})
		ok(t, p.repo.Insert(ctx, e))
		for _, name := range []string{"Photo", "CV", "Video"} {
			pointer := pointerOf(t, p, w, id, name)
			blob := blobOf(t, p, pointer[3])
			stored := sha256.Sum256(blob)
			if pointer[0] != "tp2" || pointer[1] != "220000" || pointer[2] != hex.EncodeToString(stored[:]) || bytes.Contains(blob, []byte("secret")) || pointer[2] == hex.EncodeToString(sum[:]) {
				t.Errorf("%s is stored as %v", name, pointer)
			}
			contents[pointer[2]] = true
		}
		byNote := assert.Must[*employee](t)(first(p.byNote.In("Sales").Range(ctx)))
		byEmail := assert.Must[*employee](t)(p.byEmail.In("Sales").Get(ctx, e.Email))
		for _, read := range []*employee{e, assert.Must[*employee](t)(p.repo.Get(ctx, at(id))), byNote, byEmail} {
			video, err := readAll(ctx, read.Video)
			if err != nil || !bytes.Equal(read.Photo, secret) || read.CV != string(secret) || !bytes.Equal(video, secret) || read.Video.Length() != int64(len(secret)) || read.Video.ContentType() != "video/mp4" {
				t.Errorf("read %d, %d and %d bytes, %v", len(read.Photo), len(read.CV), len(video), err)
			}
			if _, known := read.Video.SHA256(); known {
				t.Error("a sealed Stream tells a hash")
			}
		}
	}
	if len(contents) != 6 {
		t.Errorf("six values that are equal are stored as %d", len(contents))
	}
	if _, err := p.photo.SignedURL(ctx, at(1), time.Now().Add(time.Hour)); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("an address of a sealed blob: %v", err)
	}
	assert.Must[map[tables.Key]string](t)(w.check(ctx, s))
}

// TestSealedRanges: any range of any length comes back as it was, in 2 requests, or 1 for all of it.
func TestSealedRanges(t *testing.T) {
	ctx, s, k := t.Context(), storagetest.Simulator(t, nil), newKeys(t)
	requests := &storagetest.RequestCounter{}
	counted := *s
	counted.ClientOptions.PerRetryPolicies = append(slices.Clip(counted.ClientOptions.PerRetryPolicies), requests)
	options := k.options(t)
	options.BlockSize = 50_000
	w := (&world{options: options}).open(t, s)
	p := assert.Must[*process](t)(w.start(&counted))
	const chunk = 64 << 10
	for id, size := range []int{0, 1, chunk - 1, chunk, chunk + 1, 3*chunk + 5} {
		content := assert.Must[[]byte](t)(io.ReadAll(newNoise(int64(size))))
		e := with(id)
		e.Video = largeentities.NewStreamBytes(content, nil)
		ok(t, p.repo.Insert(ctx, e))
		read := assert.Must[*employee](t)(p.repo.Get(ctx, at(id))).Video
		for _, r := range [][2]int{{0, size}, {0, 1}, {size / 2, size - size/2}, {size, 0}, {chunk - 1, 2}, {chunk, 1}, {0, chunk}, {size - 1, 1}} {
			if r[0] < 0 || r[0]+r[1] > size {
				continue
			}
			requests.Reset()
			body, err := read.OpenRange(ctx, int64(r[0]), int64(r[1]))
			ok(t, err)
			got := assert.Must[[]byte](t)(io.ReadAll(body))
			ok(t, body.Close())
			want := 2
			if r[1] == size {
				want = 1
			} else if r[1] == 0 {
				want = 0
			}
			if !bytes.Equal(got, content[r[0]:r[0]+r[1]]) || requests.Count() != want {
				t.Errorf("%d bytes from %d on, of %d: read %d in %d requests", r[1], r[0], size, len(got), requests.Count())
			}
		}
		for _, concurrency := range []int{0, 3} {
			var b bytes.Buffer
			told := int64(0)
			n, err := read.Download(ctx, &b, &largeentities.DownloadOptions{Concurrency: concurrency, Progress: func(n int64) { told = n }})
			if err != nil || n != int64(size) || told != n || !bytes.Equal(b.Bytes(), content) {
				t.Errorf("downloaded %d of %d, told %d, %v", n, size, told, err)
			}
		}
		if _, err := read.Download(ctx, io.Discard, &largeentities.DownloadOptions{Concurrency: -1}); !errors.Is(err, tables.ErrWiring) {
			t.Errorf("a Concurrency of -1: %v", err)
		}
	}
}

// TestSealedUnchanged: a value that did not change keeps its blob, and one that did not is not taken for it; a Stream of
// other bytes, or from memory, is uploaded again.
func TestSealedUnchanged(t *testing.T) {
	ctx, s, k := t.Context(), storagetest.Open(t), newKeys(t)
	w := (&world{options: k.options(t)}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo, e.CV, e.Video = large("a"), string(large("c")), largeentities.NewStreamBytes(large("v"), nil)
	ok(t, p.repo.Insert(ctx, e))
	names := func() [3]string {
		return [3]string{pointerOf(t, p, w, 1, "Photo")[3], pointerOf(t, p, w, 1, "CV")[3], pointerOf(t, p, w, 1, "Video")[3]}
	}
	before := names()
	e.Note = "again"
	ok(t, p.repo.Replace(ctx, e))
	read := assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
	read.Note, read.Photo = "more", bytes.Clone(read.Photo)
	ok(t, p.repo.Replace(ctx, read))
	if after := names(); after != before {
		t.Errorf("what did not change has moved from %v to %v", before, after)
	}
	read.Photo[0] ^= 1
	read.Video = largeentities.NewStreamBytes(large("v"), nil)
	ok(t, p.repo.Replace(ctx, read))
	if after := names(); after[0] == before[0] || after[1] != before[1] || after[2] == before[2] {
		t.Errorf("before %v, and after %v", before, after)
	}
	ok(t, p.repo.Merge(ctx, read, "Note"))
	moved := *assert.Must[*employee](t)(p.repo.Get(ctx, at(1)))
	moved.ID, moved.Meta = 2, tables.Meta{}
	ok(t, p.repo.Insert(ctx, &moved)) // a Stream of another entity
	found := assert.Must[map[tables.Key]string](t)(w.check(ctx, s))
	if found[at(1)] != found[at(2)] || !strings.HasSuffix(found[at(2)], "video=v74") {
		t.Errorf("there is %q and %q", found[at(1)], found[at(2)])
	}
}

// TestReseal: what was stored in clear before there was a sealer is read while that is accepted, and sealed by Reseal; what is
// under an older data key comes under the current one.
func TestReseal(t *testing.T) {
	ctx, s, k := t.Context(), storagetest.Open(t), newKeys(t)
	w := (&world{}).open(t, s)
	unsealed := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Photo, e.CV, e.Video = large("a"), "short", largeentities.NewStreamBytes(large("v"), nil)
	ok(t, unsealed.repo.Insert(ctx, e))
	want := assert.Must[map[tables.Key]string](t)(w.check(ctx, s))
	w.options = k.options(t)
	strict := assert.Must[*process](t)(w.start(s))
	for _, err := range []error{second(strict.repo.Get(ctx, at(1))), strict.photo.Reseal(ctx, at(1))} {
		if !errors.Is(err, tables.ErrGarbled) {
			t.Errorf("what is in clear is read: %v", err)
		}
	}
	w.options.AcceptPlaintext = true
	p := assert.Must[*process](t)(w.start(s))
	reseal := func() {
		for _, x := range p.properties() {
			ok(t, x.Reseal(ctx, at(1)))
		}
	}
	assert.Must[*employee](t)(p.repo.Update(ctx, at(1), func(*employee) error { return nil })) // any write seals
	for _, name := range []string{"Photo", "CV", "Video"} {
		if mark := pointerOf(t, p, w, 1, name)[0]; mark != "tp2" {
			t.Errorf("%s is written as %s", name, mark)
		}
	}
	w.options.AcceptPlaintext = false
	if got := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); got[at(1)] != want[at(1)] {
		t.Errorf("after Reseal there is %q", got)
	}
	next := assert.Must[encryption.DataKeyID](t)(k.registry.CreateDataKey(ctx))
	p = assert.Must[*process](t)(w.start(s))
	reseal()
	for _, name := range []string{"Photo", "CV", "Video"} {
		id, err := k.stream(t, "").DataKey(blobOf(t, p, pointerOf(t, p, w, 1, name)[3]))
		if err != nil || id != next {
			t.Errorf("%s is under data key %v, %v", name, id, err)
		}
	}
	if got := assert.Must[map[tables.Key]string](t)(w.check(ctx, s)); got[at(1)] != want[at(1)] {
		t.Errorf("after another Reseal there is %q", got)
	}
	if _, err := unsealed.repo.Get(ctx, at(1)); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("a program without a sealer reads: %v", err)
	}
	if err := unsealed.photo.Reseal(ctx, at(1)); !errors.Is(err, tables.ErrWiring) {
		t.Errorf("Reseal without a sealer: %v", err)
	}
	if err := p.photo.Reseal(context.Background(), at(7)); !errors.Is(err, tables.ErrNotFound) {
		t.Errorf("Reseal of nobody: %v", err)
	}
}

// TestSealedMisuse: options that would leave something in clear are refused.
func TestSealedMisuse(t *testing.T) {
	s, k := storagetest.Simulator(t, nil), newKeys(t)
	for _, o := range []largeentities.Options{{Threshold: 10, Sealer: k.stream(t, "")}, {Threshold: -1, AcceptPlaintext: true}} {
		w := (&world{}).open(t, s)
		w.options = o
		if _, err := w.start(s); err == nil || !strings.Contains(err.Error(), "in plaintext") && !strings.Contains(err.Error(), "AcceptPlaintext") {
			t.Errorf("%+v: %v", o, err)
		}
	}
}

// TestSealedFaults breaks an insert and a replace of sealed values at every storage call, in every way.
func TestSealedFaults(t *testing.T) {
	k := newKeys(t)
	for name, c := range sweeps(world{options: k.options(t)}) {
		if name == "Insert" && !race.Enabled || name == "Replace" && !testing.Short() {
			c.Floor, c.Every = floors()[name], harness.SweepEvery()
			t.Run(name, func(t *testing.T) { storagetest.Sweep(t, c) })
		}
	}
}
