package engine_test

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }
