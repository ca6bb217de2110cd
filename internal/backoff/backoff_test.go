package backoff

import (
	"context"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func TestDelayIsBounded(t *testing.T) {
	for n := range 100 {
		for range 100 {
			if d := Delay(n); d <= 0 || d > most+time.Millisecond {
				t.Fatalf("attempt %d waits %v", n, d)
			}
		}
	}
}

func TestWaitEndsWithTheContext(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	start := time.Now()
	assert.Equal(assert.Fatal(t), Wait(ctx, 20), context.Canceled)
	if time.Since(start) > time.Second/2 {
		t.Fatal("waited on a dead context")
	}
}
