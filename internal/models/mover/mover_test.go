package mover

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/models"
	"github.com/tablepatterns/tablepatterns/internal/models/moves"
)

// TestModel: no acknowledged change is lost, nothing is poisoned without a reason, nothing is left behind.
func TestModel(t *testing.T) { models.Check(t, worlds(), nil, harness.Thorough()) }

// TestEveryRuleIsNeeded: without any one of its rules the protocol breaks a promise.
func TestEveryRuleIsNeeded(t *testing.T) {
	moves.CheckRules(t, names, func(c moves.Case, drop models.Rules) models.Result { return World{c}.Walk(drop) })
}
