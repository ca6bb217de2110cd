package logdata_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/logdata"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestMetadataHoldUpNoRecords: many blobs whose metadata are to be set, as when a service has refused that for a while, hold up
// records by one request at most: a crash loses what its Interval and the request under way bring, and no more.
func TestMetadataHoldUpNoRecords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const latency = 700 * time.Millisecond
		refused := storagetest.NewToggle(storagetest.On(storagetest.SetBlobMetadata, storagetest.Always(storagetest.NotSent)))
		slow := storagetest.On(storagetest.SetBlobMetadata, storagetest.Always(storagetest.Before("slow", func() { time.Sleep(latency) })))
		faulty, _ := storagetest.Simulator(t, nil).WithRetries(0).Faulty(storagetest.First(refused, slow))
		l := newLog(t, faulty, nil)
		w := assert.Must[*logdata.Writer](t)(l.NewWriter(&logdata.WriterOptions{Buffered: true, BlobAppends: 1}))
		refused.Set(true)
		at := noon()
		write := func(n int) {
			t.Helper()
			assert.Check(t, w.Write(t.Context(), record(at, fmt.Sprint(n))))
			at = at.Add(time.Millisecond)
			time.Sleep(time.Second + latency)
			synctest.Wait()
			assert.Equal(t, w.Stats().Records, 0, "a record is in memory after its Interval and one request")
		}
		for n := range 20 {
			write(n)
		}
		refused.Set(false)
		for n := range 20 {
			write(20 + n)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		final := 0
		for _, b := range blobsOf(t, l) {
			if b.Final {
				final++
			}
		}
		if final != 39 { // all but the last one, which takes more
			t.Errorf("%d blobs are final", final)
		}
		assert.Check(t, w.Close(t.Context()))
	})
}
