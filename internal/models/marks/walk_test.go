package marks

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/models"
)

// TestWalk walks through every order of requests, crashes, repeated and late requests: in each state, settled rows are right and keys have their
// rows, and each read was true at a moment between its beginning and its end. Without any rule of the protocol one of the walks finds a violation.
func TestWalk(t *testing.T) { models.Check(t, worlds(), names(), harness.Thorough()) }
