package core_test

import (
	"testing"

	goroutines "github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { goroutines.Main(m) }
