package backoff

import (
	"context"
	"testing"
	"time"
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
	if err := Wait(ctx, 20); err != context.Canceled {
		t.Fatalf("error is %v", err)
	}
	if time.Since(start) > time.Second/2 {
		t.Fatal("waited on a dead context")
	}
}
