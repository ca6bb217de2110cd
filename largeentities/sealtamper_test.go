package largeentities_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/race"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

func first[V any](all iter.Seq2[V, error]) (v V, err error) {
	for v, err := range all {
		return v, err
	}
	return v, errors.New("there is none")
}

func second[V any](_ V, err error) error { return err }

// refused checks that no way of reading the photo and the video of an employee gives anything but an error that says it was
// changed; of a range that is not touched by the damage, nothing but what was there. untouched is how many bytes at the
// beginning of the video are as they were, -1 where no range may be read.
func refused(t *testing.T, p *process, id int, what string, right []byte, untouched int64) {
	t.Helper()
	ctx := t.Context()
	if _, err := p.repo.Get(ctx, at(id)); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("%s: Get: %v", what, err)
	}
	page, err := p.repo.Query().Partition("Sales").Rows(compoundkey.Exactly(compoundkey.Int(id, 6)).Under("empid")).Select("Video").First(ctx)
	if err != nil {
		if !errors.Is(err, tables.ErrGarbled) {
			t.Errorf("%s: Select: %v", what, err)
		}
		return
	}
	video := p.video.Of(page)
	for _, concurrency := range []int{0, 3} {
		var b bytes.Buffer
		_, err := video.Download(ctx, &b, &largeentities.DownloadOptions{Concurrency: concurrency})
		if !errors.Is(err, tables.ErrGarbled) || !bytes.HasPrefix(right, b.Bytes()) {
			t.Errorf("%s: Download: %d bytes, %v", what, b.Len(), err)
		}
	}
	r, err := video.Open(ctx)
	if err == nil {
		var b []byte
		b, err = io.ReadAll(r)
		r.Close()
		if !bytes.HasPrefix(right, b) {
			t.Errorf("%s: Open gave other bytes", what)
		}
	}
	if !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("%s: Open: %v", what, err)
	}
	for offset := int64(0); offset+10 <= video.Length(); offset += 30_000 {
		r, err := video.OpenRange(ctx, offset, 10)
		if err == nil {
			var b []byte
			b, err = io.ReadAll(r)
			r.Close()
			if err == nil && (untouched < 0 || !bytes.Equal(b, right[offset:offset+10])) {
				t.Errorf("%s: a range at %d is read", what, offset)
			}
		}
		if err != nil && (!errors.Is(err, tables.ErrGarbled) || offset+10 <= untouched) {
			t.Errorf("%s: a range at %d: %v", what, offset, err)
		}
	}
}

// TestSealedTampering: whoever can write rows and blobs, metadata and hashes included, cannot make a reader take anything for
// the value but the value.
func TestSealedTampering(t *testing.T) {
	ctx, s, k := t.Context(), storagetest.Open(t), newKeys(t)
	options := k.options(t)
	options.BlockSize = 100_000
	w := (&world{options: options}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	const chunk, header, sealed = 64 << 10, 88, 64<<10 + 28
	right := assert.Must[[]byte](t)(io.ReadAll(newNoise(3*chunk + 100)))
	for id := 1; id <= 2; id++ {
		e := with(id)
		e.Photo, e.Video = right, largeentities.NewStreamBytes(right, nil)
		ok(t, p.repo.Insert(ctx, e))
	}
	row := rowOf(t, p, w, 1)
	photo, video, other := pointerOf(t, p, w, 1, "Photo"), pointerOf(t, p, w, 1, "Video"), pointerOf(t, p, w, 2, "Video")
	genuine := blobOf(t, p, video[3])
	overwrite := func(name string, content []byte, hash string) {
		b := p.blobs.NewBlockBlobClient(name)
		old, _ := b.GetProperties(ctx, nil) // none of a blob that is new
		meta := map[string]*string{"tpsha256": &hash}
		for name, value := range old.Metadata {
			if !strings.EqualFold(name, "tpsha256") {
				meta[name] = value
			}
		}
		_, err := b.Upload(ctx, streaming.NopCloser(bytes.NewReader(content)), &blockblob.UploadOptions{Metadata: meta})
		ok(t, err)
	}
	point := func(property string, fields []string) {
		changed := &tables.Entity{Key: row.Key, Properties: append(tables.Properties(nil), row.Properties...)}
		changed.Properties.Set(property, tables.String(strings.Join(fields, " ")))
		ok(t, p.account.Table(w.table).Entities().Upsert(ctx, changed))
	}
	edited := func(at int, to string) []string {
		fields := append([]string(nil), video...)
		fields[at] = to
		return fields
	}
	hashOf := func(b []byte) string { sum := sha256.Sum256(b); return hex.EncodeToString(sum[:]) }
	flipped := func(at int) []byte { b := bytes.Clone(genuine); b[at] ^= 1; return b }
	reordered := bytes.Clone(genuine)
	copy(reordered[header:], genuine[header+sealed:header+2*sealed])
	copy(reordered[header+sealed:], genuine[header:header+sealed])
	for _, c := range []struct {
		what      string
		content   []byte
		untouched int64
	}{
		{"a bit of the header", flipped(60), -1},
		{"the data key's id", flipped(10), -1},
		{"a bit of the second chunk", flipped(header + sealed + 5), chunk},
		{"the last bit", flipped(len(genuine) - 1), 3 * chunk},
		{"truncated by a chunk", genuine[:header+3*sealed], 0},
		{"truncated by a byte", genuine[:len(genuine)-1], 0},
		{"extended", append(bytes.Clone(genuine), 0), 0},
		{"chunks reordered", reordered, 0},
		{"another entity's blob", blobOf(t, p, other[3]), -1},
		{"another property's blob", blobOf(t, p, photo[3]), -1},
		{"nothing", nil, -1},
		{"clear text", right, -1},
	} {
		overwrite(video[3], c.content, video[2])
		overwrite(photo[3], nil, photo[2])
		refused(t, p, 1, c.what, right, c.untouched)
		overwrite(video[3], c.content, hashOf(c.content)) // and the pointer, in which the length follows where there is one
		fields := edited(2, hashOf(c.content))
		if n, err := k.stream(t, "").PlainSize(int64(len(c.content))); err == nil {
			fields[1] = fmt.Sprint(n)
		}
		point("Video", fields)
		refused(t, p, 1, c.what+", with its pointer", right, c.untouched)
		point("Video", video)
	}
	overwrite(video[3], genuine, video[2])
	overwrite(photo[3], blobOf(t, p, pointerOf(t, p, w, 2, "Photo")[3]), photo[2])
	if _, err := p.repo.Get(ctx, at(1)); !errors.Is(err, tables.ErrGarbled) {
		t.Errorf("a photo exchanged for another one: %v", err)
	}
	overwrite("Clear", right, hashOf(right))
	for what, fields := range map[string][]string{
		"the pointer of another entity":   other,
		"the pointer of another property": photo,
		"another content type":            edited(4, "text/html"),
		"another length":                  edited(1, fmt.Sprint(2*chunk)),
		"a pointer to clear text":         {"tp1", fmt.Sprint(len(right)), hashOf(right), "Clear", video[4]},
		"the mark of clear text":          edited(0, "tp1"),
		"a mark that nobody knows":        edited(0, "tp3"),
	} {
		point("Video", fields)
		refused(t, p, 1, what, right, -1)
	}
	changed := &tables.Entity{Key: row.Key, Properties: append(tables.Properties(nil), row.Properties...)}
	changed.Properties.Set("Video", tables.Binary(right[:1000]))
	ok(t, p.account.Table(w.table).Entities().Upsert(ctx, changed))
	refused(t, p, 1, "a value within the entity", right, -1)
	ok(t, p.account.Table(w.table).Entities().Upsert(ctx, &tables.Entity{Key: row.Key, Properties: row.Properties}))
	overwrite(photo[3], nil, photo[2])
	refusedByOthers(t, w, s, k)
}

// refusedByOthers: a reader of another scope, or with other data keys, reads nothing.
func refusedByOthers(t *testing.T, w *world, s *storagetest.Service, k keys) {
	t.Helper()
	for what, sealer := range map[string]largeentities.Sealer{"another scope": k.stream(t, "tenant B"), "other data keys": newKeys(t).stream(t, "")} {
		others := *w
		others.options.Sealer = sealer
		p := assert.Must[*process](t)(others.start(s))
		if _, err := p.repo.Get(t.Context(), at(2)); !errors.Is(err, tables.ErrGarbled) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// plainSealer seals nothing, so that what it is given can be looked at.
type plainSealer struct {
	largeentities.Sealer
	bindings map[string]bool
	more     int
}

func (s plainSealer) Seal(_ context.Context, binding []byte, r io.Reader) (io.Reader, error) {
	s.bindings[string(binding)] = true
	return r, nil
}
func (plainSealer) SealedSize(n int64) int64 { return n }

// Open gives as much as is there, and more or less of it.
func (s plainSealer) Open(_ context.Context, _ []byte, r io.Reader) (io.Reader, error) {
	if s.more < 0 {
		data, err := io.ReadAll(r)
		return bytes.NewReader(data[:len(data)+s.more]), err
	}
	return io.MultiReader(r, strings.NewReader(strings.Repeat("x", s.more))), nil
}

// TestGoldenSealed pins the pointer and what a sealed blob is bound to.
func TestGoldenSealed(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	sealer := plainSealer{bindings: map[string]bool{}}
	w := (&world{options: largeentities.Options{Threshold: -1, Sealer: sealer}}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(223)
	e.Video = largeentities.NewStreamBytes([]byte(strings.Repeat("v", 100)), &largeentities.StreamOptions{ContentType: "video/mp4; codecs=avc1"})
	ok(t, p.repo.Insert(ctx, e))
	pointer := pointerOf(t, p, w, 223, "Video")
	name := pointer[3]
	if !strings.HasPrefix(name, w.table+"/Video/ZPQP4G7J7MPKH6BITGL6UVIA/") || pointer[0] != "tp2" || pointer[1] != "100" ||
		pointer[2] != "a71bdb64c1cbac8f2e4a8197282afd7f977ff720b330e8d1d8853f2f81ed84b2" || pointer[4] != "video/mp4; codecs=avc1" {
		t.Errorf("the pointer is %v", pointer)
	}
	want := ""
	for _, field := range []string{"tablepatterns/largeentities/1", p.account.Identity(), strings.ToLower(w.table), "Sales", "empid_000223", "Video", name, "video/mp4; codecs=avc1"} {
		want += "\x00\x00\x00" + string(rune(len(field))) + field
	}
	if len(sealer.bindings) != 1 || !sealer.bindings[want] {
		t.Errorf("bound to %v, want %q", sealer.bindings, want)
	}
	if got, err := readAll(ctx, assert.Must[*employee](t)(p.repo.Get(ctx, at(223))).Video); err != nil || len(got) != 100 {
		t.Errorf("read %d bytes, %v", len(got), err)
	}
}

// TestFaultySealer: a sealer that opens another number of bytes than the entity says is not believed.
func TestFaultySealer(t *testing.T) {
	ctx, s := t.Context(), storagetest.Simulator(t, nil)
	w := (&world{options: largeentities.Options{Threshold: -1, Sealer: plainSealer{bindings: map[string]bool{}}}}).open(t, s)
	e := with(1)
	e.Photo = large("p")
	f := with(2)
	f.Video = largeentities.NewStreamBytes(large("v"), nil)
	writer := assert.Must[*process](t)(w.start(s)).repo
	ok(t, writer.Insert(ctx, e), writer.Insert(ctx, f))
	for _, more := range []int{-1, 1} {
		w.options.Sealer = plainSealer{more: more}
		repo := assert.Must[*process](t)(w.start(s)).repo
		video := assert.Must[*employee](t)(repo.Get(ctx, at(2))).Video
		r := assert.Must[io.ReadCloser](t)(video.Open(ctx))
		ways := []error{second(repo.Get(ctx, at(1))), second(io.ReadAll(r)), second(readAll(ctx, video))}
		for _, err := range append(ways, r.Close())[:len(ways)] {
			if !errors.Is(err, tables.ErrGarbled) {
				t.Errorf("%d more bytes: %v", more, err)
			}
		}
	}
}

// TestSealedTransfer: 64 MiB go up and come down in little memory; on a service in this process, less.
func TestSealedTransfer(t *testing.T) {
	ctx, s, k := t.Context(), storagetest.Open(t), newKeys(t)
	size := int64(64 << 20)
	inMemory := s.Clock != nil || race.Enabled
	if inMemory {
		size = 9<<20 + 13
	}
	w := (&world{options: k.options(t)}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	e := with(1)
	e.Video = largeentities.NewStreamReader(newNoise(size), nil)
	up := heapGrowth(func() { ok(t, p.repo.Insert(ctx, e)) })
	got := assert.Must[*employee](t)(p.repo.Get(ctx, at(1))).Video
	sum, want := sha256.New(), sha256.New()
	assert.Must[int64](t)(io.Copy(want, newNoise(size)))
	var n int64
	var err error
	down := heapGrowth(func() { n, err = got.Download(ctx, sum, nil) })
	if err != nil || n != size || !bytes.Equal(sum.Sum(nil), want.Sum(nil)) {
		t.Errorf("%d of %d bytes came down, %v", n, size, err)
	}
	t.Logf("the heap grew by %.1f MiB up and %.1f MiB down", float64(up)/(1<<20), float64(down)/(1<<20))
	if !inMemory && max(up, down) > heapLimit {
		t.Errorf("the heap grew by %d bytes up and %d down, and may grow by %d", up, down, heapLimit)
	}
}
