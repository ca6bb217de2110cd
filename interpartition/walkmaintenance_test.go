package interpartition_test

import (
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/patterns"
)

// runVerify, runRepair and runRebuild are maintenance runs as processes of a walk. The lag is the shortest that there is: whatever a run
// may do after it, it does in some order.
var runVerify, runRepair, runRebuild = maintain(0), maintain(1), maintain(2)

func maintain(i int) change {
	itself := func(repo *patterns.Repository[employee]) *patterns.Repository[employee] { return repo }
	return harness.RepositoryJobs(itself, time.Nanosecond)[i].Run
}

// beside is a scene with one more process, which leaves the entities as they are.
func (s walkScene) beside(name string, run change) walkScene {
	s.name += " beside " + name
	s.writers = append(append([][]change{}, s.writers...), []change{run})
	return s
}

// sceneInsert is an entity that comes.
var sceneInsert = walkScene{"an insert", nil, [][]change{{comes(1, "a")}}, []string{"", "1 a before"}}

// sceneDelete is one that goes.
var sceneDelete = walkScene{"a delete", one, [][]change{{goes(1)}}, []string{"1 a before", ""}}

// TestWalkMaintenance: Verify, Repair and Rebuild beside a writer, a worker and a death, and, thoroughly, a pause that takes
// messages from their holders.
func TestWalkMaintenance(t *testing.T) {
	size := walkSize{workers: 1, crashes: 1}
	if harness.Thorough() {
		size = middle
	}
	for _, run := range []struct {
		name string
		change
	}{{"Verify", runVerify}, {"Repair", runRepair}, {"Rebuild", runRebuild}} {
		scenes := []walkScene{sceneAlone.beside(run.name, run.change), sceneDelete.beside(run.name, run.change), sceneInsert.beside(run.name, run.change)}
		walkConverges(t, size, scenes, plain, unique, async)
	}
}

// TestWalkRepairBesideWriters: Repair beside two concurrent writers and a worker.
func TestWalkRepairBesideWriters(t *testing.T) {
	calm := walkSize{workers: 1}
	repair := func(scenes ...walkScene) (with []walkScene) {
		for _, scene := range scenes {
			with = append(with, scene.beside("Repair", runRepair))
		}
		return with
	}
	walkConverges(t, calm, repair(sceneInserts), unique)
	if !harness.Thorough() {
		return // a minute
	}
	walkConverges(t, calm, repair(sceneMoves, sceneGoes), plain, async)
	walkConverges(t, calm, repair(sceneHandOver, sceneRace), unique)
}

// TestWalkTwoRuns: a Repair and a Rebuild, and two Repairs, beside a writer that may die anywhere.
func TestWalkTwoRuns(t *testing.T) {
	dies := walkSize{workers: 1, crashes: 1}
	walkConverges(t, dies, []walkScene{sceneInsert.beside("Repair", runRepair).beside("Rebuild", runRebuild)}, plain, unique)
	if !harness.Thorough() {
		return // half a minute
	}
	twice := sceneAlone.beside("Repair", runRepair).beside("Repair", runRepair)
	walkConverges(t, dies, []walkScene{twice}, plain)
	walkConverges(t, walkSize{workers: 1}, []walkScene{twice}, unique)
}
