package storagetest_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

func TestOpenTakesWhatIsAskedFor(t *testing.T) {
	t.Setenv(storagetest.ServiceVariable, "simulator")
	s := storagetest.Open(t)
	if s.Clock == nil || storagetest.Open(t) != s {
		t.Fatalf("%v is not the one simulator", s)
	}
	if shared, err := storagetest.OpenShared(); err != nil || shared != s {
		t.Fatalf("%v, %v", shared, err)
	}
	t.Setenv(storagetest.ServiceVariable, "simulater")
	assert.Error(assert.Fatal(t), assert.Err(storagetest.Simulated()), "a misspelt service was taken")
	assert.Error(assert.Fatal(t), assert.Err(storagetest.OpenShared()), "a misspelt service was taken")
}
