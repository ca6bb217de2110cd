package logdata_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestForgedBlobs: whoever can write blobs of the container adds blobs of the log, with whatever content and metadata. A query yields
// every record of the writers, none outside of its range, and does not panic; damage is told.
func TestForgedBlobs(t *testing.T) {
	s := storagetest.Simulator(t, nil)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	c := assert.Must[*container.Client](t)(containerOf(s, name))
	w := newWriter(t, l, nil)
	var own []string
	for i := range 20 {
		text := fmt.Sprintf("own %d", i)
		assert.Check(t, w.Write(t.Context(), logdata.Record{Time: noon().Add(time.Duration(i) * time.Minute), Data: []byte(text)}))
		own = append(own, text)
	}
	content := contentOf(t, c, blobsOf(t, l)[0].Name)
	random := rand.New(rand.NewPCG(1, 2))
	from, to := noon().Add(3*time.Minute), noon().Add(12*time.Minute)
	for round := range 60 {
		forged := slices.Clone(content)
		for range random.IntN(6) {
			forged[random.IntN(len(forged))] = byte(random.IntN(256))
		}
		forged = append(forged, forged[:random.IntN(len(forged))]...) // repeated, and cut off
		metadata := map[string]*string{}
		for _, key := range []string{"tpfirst", "tplast", "tprecords", "tpperiod", "tpdisorder", "tpwriter"} {
			values := []string{"", "-1", "999999999999999999999", "0", "60", "2026-11-20T12:05:00.000000000Z", "0001-01-01T00:00:00.000000000Z", "9999-12-31T23:59:59.999999999Z", "x"}
			if n := random.IntN(len(values) + 1); n < len(values) && values[n] != "" {
				metadata[key] = &values[n]
			}
		}
		at := fmt.Sprintf("web/2026/11/20/12%02d/%06d.log", random.IntN(6)*10, 100+round)
		assert.Check(t, assert.Err(c.NewAppendBlobClient(at).Create(t.Context(), &appendblob.CreateOptions{Metadata: metadata})))
		appendRaw(t, c, at, forged)
	}
	damages, found := 0, map[string]int{}
	for r, err := range l.Query(t.Context(), from, to, &logdata.QueryOptions{Damaged: func(logdata.Damage) { damages++ }}) {
		assert.Check(t, err)
		if r.Time.Before(from) || !r.Time.Before(to) {
			t.Errorf("a record of %v, asked for from %v up to %v", r.Time, from, to)
		}
		found[string(r.Data)]++
	}
	for i, text := range own {
		if inside := i >= 3 && i < 12; inside && found[text] == 0 {
			t.Errorf("%q is not read beside forged blobs", text)
		}
	}
	if damages == 0 {
		t.Error("no damage was told")
	}
}

// TestForgedData: what is logged may quote the bytes of other records, as whoever can have a text logged can. It reads as the one record
// that it is.
func TestForgedData(t *testing.T) {
	s := storagetest.Open(t)
	name := newContainer(t, s)
	l := assert.Must[*logdata.Log](t)(openLog(s, name, nil))
	w := newWriter(t, l, nil)
	assert.Check(t, w.Write(t.Context(), record(noon(), "plain")))
	quoted := string(contentOf(t, assert.Must[*container.Client](t)(containerOf(s, name)), blobsOf(t, l)[0].Name))
	texts := []string{"plain"}
	for i, text := range []string{quoted, "\n" + quoted + quoted, quoted[:len(quoted)-3], "\x10r" + quoted[1:], "\x1e\x1e\x10\x10"} {
		assert.Check(t, w.Write(t.Context(), record(noon().Add(time.Duration(i+1)*time.Second), text)))
		texts = append(texts, text)
	}
	wantTexts(t, readDay(t, l), texts)
}
