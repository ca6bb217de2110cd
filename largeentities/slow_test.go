package largeentities_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// slowReader gives a byte in each pause.
type slowReader struct {
	left  int
	pause time.Duration
}

func (r *slowReader) Read(p []byte) (int, error) {
	if r.left == 0 {
		return 0, io.EOF
	}
	time.Sleep(r.pause)
	r.left--
	p[0] = 'z'
	return 1, nil
}

// TestSlowUpload: a value takes many times as long as messages are hidden, and as blobs may wait for their transaction. The
// message is renewed meanwhile, and the entity's other blob is kept young, so that a sweep beside it leaves it alone.
func TestSlowUpload(t *testing.T) {
	explore.Schedules(t, explore.ScheduleCase{Seeds: 5, Steps: 100_000, Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
		w := (&world{options: largeentities.Options{Deadline: deadline, BlockSize: 50}}).open(t, s)
		began := time.Now()
		return explore.Stage{
			Actors: []explore.Actor{func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err != nil {
					return err
				}
				e := with(1)
				e.Photo = large("a") // stored first
				e.Video = largeentities.NewStreamReader(&slowReader{left: 200, pause: time.Second}, &largeentities.StreamOptions{ContentType: "video/mp4"})
				return p.repo.Insert(ctx, e)
			}, func(ctx context.Context, s *storagetest.Service) error {
				p, err := w.start(s)
				if err != nil {
					return err
				}
				for time.Since(began) < 190*time.Second {
					time.Sleep(deadline / 4)
					for _, x := range p.properties() {
						if report, err := x.Sweep(ctx, &largeentities.SweepOptions{Grace: 2 * deadline}); err != nil || report.Deleted > 0 {
							return fmt.Errorf("a sweep beside the writer: %+v %w", report, err)
						}
					}
				}
				return nil
			}},
			Check: func(ctx context.Context, s *storagetest.Service, errs []error) error {
				if err := errors.Join(errs...); err != nil {
					return err
				}
				if took := time.Since(began); took < 200*time.Second {
					return fmt.Errorf("it took %v only", took)
				}
				found, err := w.check(ctx, s)
				if err != nil || found[at(1)] != "first photo=a74 cv= video=z200" {
					return fmt.Errorf("%q, %w", found, err)
				}
				return nil
			},
		}
	}})
}

// TestLateTransaction: a writer that stands still between its blob and its transaction for longer than the deadline does not
// send the transaction, though its message is still its own.
func TestLateTransaction(t *testing.T) {
	explore.Schedules(t, explore.ScheduleCase{Seeds: 3, Stage: func(t testing.TB, s *storagetest.Service) explore.Stage {
		w := (&world{options: largeentities.Options{Deadline: 2 * time.Second}}).open(t, s)
		return explore.Stage{
			Actors: []explore.Actor{func(ctx context.Context, s *storagetest.Service) error {
				// The renewals of the blob fail, and so does the transaction, for a while.
				faulty, _ := s.Faulty(storagetest.First(
					storagetest.On(storagetest.SetBlobMetadata, storagetest.Always(storagetest.Before500)),
					storagetest.On(storagetest.InsertEntity, storagetest.Always(storagetest.Before("a pause", func() { time.Sleep(3 * time.Second) })))))
				faulty.ClientOptions.Retry.MaxRetries = -1
				p, err := w.start(faulty)
				if err != nil {
					return err
				}
				e := with(1)
				e.Photo, e.Video = large("a"), largeentities.NewStreamReader(&slowReader{left: 100, pause: 50 * time.Millisecond}, nil)
				if err := p.repo.Insert(ctx, e); !errors.Is(err, eventual.ErrLeaseLost) {
					return fmt.Errorf("the transaction was sent after the deadline: %w", err)
				}
				return nil
			}},
			Check: func(ctx context.Context, s *storagetest.Service, errs []error) error {
				if err := errors.Join(append(errs, w.sweep(ctx, s))...); err != nil {
					return err
				}
				found, err := w.check(ctx, s)
				if err != nil || len(found) != 0 {
					return fmt.Errorf("%q, %w", found, err)
				}
				return nil
			},
		}
	}})
}

// TestSweepKeepsTheWritersDeadline: a sweep in a program whose Deadline is short leaves the blob of a writer whose Deadline is long,
// and whose other value is still being sent, whatever Grace it is given.
func TestSweepKeepsTheWritersDeadline(t *testing.T) {
	storagetest.InBubble(t, func(t *testing.T, s *storagetest.Service) {
		sweeps := (&world{options: largeentities.Options{Deadline: time.Second}}).open(t, s)
		writes := *sweeps
		writes.options.Deadline = 3 * time.Hour
		done := make(chan error)
		go func() {
			p, err := writes.start(s)
			if err == nil {
				e := with(1)
				e.Photo = large("a") // stored first
				e.Video = largeentities.NewStreamReader(&slowReader{left: 200, pause: 20 * time.Second}, nil)
				err = p.repo.Insert(t.Context(), e)
			}
			done <- err
		}()
		p := assert.Must[*process](t)(sweeps.start(s))
		time.Sleep(time.Hour)
		for _, grace := range []time.Duration{2 * time.Second, time.Minute, 0} {
			r := assert.Must[largeentities.SweepReport](t)(p.photo.Sweep(t.Context(), &largeentities.SweepOptions{Grace: grace}))
			if r.Young != 1 || r.Deleted != 0 {
				t.Errorf("a sweep with Grace %v beside the writer: %+v", grace, r)
			}
		}
		ok(t, <-done)
		if _, err := sweeps.check(t.Context(), s); err != nil {
			t.Error(err)
		}
	})
}
