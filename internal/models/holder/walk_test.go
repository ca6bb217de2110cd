package holder

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/models"
)

// TestWalk walks through every order of steps and crashes: in each final state the holder is as its source requires, and without any
// rule of the protocol one of the walks finds a violation.
func TestWalk(t *testing.T) { models.Check(t, worlds(), names, harness.Thorough()) }
