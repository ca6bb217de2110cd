package eventual

import (
	"testing"
	"time"
)

// TestReleasesOfIntentsAreBounded: a message that says of itself that it was released very often still goes to the poison
// queue, since no more releases are believed than fit into the time since it was sent.
func TestReleasesOfIntentsAreBounded(t *testing.T) {
	q := &Queue{visibility: time.Minute}
	for _, c := range []struct {
		messageType           string
		sent                  time.Duration // ago
		waits, dequeues, want int
	}{
		{"ship", time.Hour, 5, 9, 9},
		{intentType, time.Hour, 0, 9, 9},
		{intentType, time.Hour, -3, 9, 9},
		{intentType, time.Hour, 5, 9, 4},
		{intentType, time.Hour, 1 << 40, 9, 1},
		{intentType, time.Hour, 1 << 40, 1000, 1000 - 81}, // 80 delays of 45 s in an hour
		{intentType, 0, 1 << 40, 9, 8},
		{intentType, -time.Hour, 1 << 40, 9, 8},
		{intentType, 100 * time.Hour, 1 << 40, 1000, 1000 - 481}, // the 6 hours of the deployment
	} {
		d := &delivery{session: &session{Worker: &Worker{queue: q, options: WorkerOptions{DeploymentTimeout: 6 * time.Hour}}}, raw: dequeued{dequeues: c.dequeues},
			message: &Message{Type: c.messageType, Sent: time.Now().Add(-c.sent), envelope: &envelope{Waits: c.waits}}}
		if got := d.attempts(); got != c.want {
			t.Errorf("%+v: %d attempts", c, got)
		}
	}
}

// TestPostponementGrows: an intent is released for longer and longer, with jitter, and for 5 minutes at most.
func TestPostponementGrows(t *testing.T) {
	for _, visibility := range []time.Duration{time.Second, time.Minute, time.Hour} {
		d := &delivery{session: &session{Worker: &Worker{queue: &Queue{visibility: visibility}}}}
		for waits := range 1000 {
			limit := longestPostponement
			if waits < 9 {
				limit = min(limit, visibility<<waits)
			}
			if got := d.postponement(waits); got > limit || got < limit*3/4 || got < min(d.leastPostponement(), limit*3/4) {
				t.Fatalf("visibility %v: release %d is for %v, at most %v", visibility, waits, got, limit)
			}
		}
	}
}
