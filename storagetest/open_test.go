package storagetest_test

import (
	"testing"

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
	if _, err := storagetest.Simulated(); err == nil {
		t.Fatal("a misspelt service was taken")
	}
	if _, err := storagetest.OpenShared(); err == nil {
		t.Fatal("a misspelt service was taken")
	}
}
