package interpartition_test

import (
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

func TestWalkProbe(t *testing.T) {
	for name, w := range map[string]*walked{
		"moves": {entities: []*employee{with(1, "a")}, writers: [][]change{{moves(1, "b")}, {moves(1, "c")}}, workers: 2},
		"keeps": {entities: []*employee{with(1, "a")}, writers: [][]change{{moves(1, "a")}, {moves(1, "a")}}, workers: 2},
	} {
		for _, n := range []struct{ k, c, p int }{{1, 0, 0}, {2, 0, 0}, {1, 1, 0}, {1, 0, 1}, {1, 1, 1}, {1, 2, 1}, {2, 1, 1}, {2, 2, 0}} {
			w.workers = n.k
			x := storagetest.Interleavings(t, storagetest.InterleavingCase{Name: name, Stage: w.stage, Crashes: n.c, Pauses: n.p, Pause: walkVisibility + time.Second})
			t.Log(n, x.Returned)
			x.MustAgree(t)
		}
	}
}
