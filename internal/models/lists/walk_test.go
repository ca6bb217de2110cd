package lists

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/models"
)

// TestWalk walks through every order of steps, crashes and late requests: in each final state the lists have their members, and
// without any rule of the protocol one of the walks finds a violation.
func TestWalk(t *testing.T) { models.Check(t, worlds(), names, harness.Thorough()) }
