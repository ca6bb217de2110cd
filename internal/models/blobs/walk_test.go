package blobs

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/models"
)

// TestWalk walks through every order of requests, ticks, crashes and late requests: the blob that the entity names exists, and all others can be
// swept. Without any rule of the protocol one of the walks finds a violation.
func TestWalk(t *testing.T) { models.Check(t, worlds(), names, harness.Thorough()) }
