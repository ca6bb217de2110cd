package explore

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// process runs an actor in a bubble of its own, from one point of rest to the next. It is at rest when all its calls are held or it has
// ended.
type process struct {
	actor  Actor
	of     *storagetest.Service // the service whose address the clients use
	locate callNamer
	idle   time.Duration

	steps chan processStep // made outside of the bubble, so that no time passes in the bubble while the process waits for a step
	rests chan rest
	over  chan struct{}

	held heldCalls[*heldCall] // the calls that wait for an answer
}

// processStep continues a process at rest.
type processStep struct {
	seed uint64 // seed of all random numbers until the next rest
	// index and answer of the call to answer, or the time to let pass; the zero step starts the process
	call   int
	answer *walkAnswer
	pause  time.Duration
}

// rest describes a process at rest.
type rest struct {
	calls []*walkRequest // sorted by identity
	ended bool
	err   error // the actor's error, or the reason why the process does not come to rest
	stuck bool
	drew  bool // whether random numbers were drawn since the previous rest
}

// heldCall is a call that waits for its answer.
type heldCall struct {
	request *walkRequest
	answer  chan *walkAnswer // nil: the process has died
}

// start runs an actor until its first calls.
func startProcess(t *testing.T, actor Actor, of *storagetest.Service, idle time.Duration, seed uint64) (*process, rest) {
	p := &process{actor: actor, of: of, locate: of.CallNamer(), idle: idle, steps: make(chan processStep), rests: make(chan rest), over: make(chan struct{})}
	go func() {
		defer close(p.over)
		synctest.Test(t, p.live)
	}()
	return p, p.step(processStep{seed: seed})
}

// step carries out a step and waits for the next rest.
func (p *process) step(s processStep) rest {
	p.steps <- s
	return <-p.rests
}

// kill ends the process.
func (p *process) kill() {
	close(p.steps)
	<-p.over
}

// live runs the process inside its bubble.
func (p *process) live(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	var all sync.WaitGroup
	for s := range p.steps {
		// The random source is reseeded for each step, so that the numbers depend only on the history of the process.
		seedRandomness(t, s.seed)
		first := someRandomness()
		seedRandomness(t, s.seed)
		switch {
		case s.answer != nil:
			p.answer(s.call, s.answer)
		case s.pause > 0:
			time.Sleep(s.pause)
		default:
			all.Go(func() { ended <- p.actor(ctx, p.service()) })
		}
		r := p.rest(ended)
		// If the process has drawn no number, the next number is still the first of the seed.
		r.drew = someRandomness() != first
		p.rests <- r
	}
	p.held.release(func(h *heldCall) { h.answer <- nil })
	cancel()
	all.Wait()
}

// someRandomness draws a random number, as a process would.
func someRandomness() (b [16]byte) {
	rand.Read(b[:]) // crypto/rand does not fail
	return b
}

// service returns the service for the actor. It has only the methods that clients need.
func (p *process) service() *storagetest.Service {
	of := p.of
	s := &storagetest.Service{ConnectionString: of.ConnectionString, AccountName: of.AccountName, AccountKey: of.AccountKey,
		TableEndpoint: of.TableEndpoint, QueueEndpoint: of.QueueEndpoint, BlobEndpoint: of.BlobEndpoint, ClientOptions: of.ClientOptions}
	return s.WithRetries(retries).WithTransport(func(policy.Transporter) policy.Transporter { return p })
}

// restlessLimit is how many times in a row time may pass without a call of the process.
const restlessLimit = 100

// rest waits until the process has held calls, or has ended.
func (p *process) rest(ended chan error) rest {
	for range restlessLimit {
		synctest.Wait()
		select {
		case err := <-ended:
			return rest{ended: true, err: err}
		default:
		}
		if calls := p.calls(); len(calls) > 0 {
			return rest{calls: calls}
		}
		time.Sleep(p.idle)
	}
	return rest{stuck: true, err: fmt.Errorf("the process has neither made a call nor ended for %v", restlessLimit*p.idle)}
}

// calls returns the held calls in an order that does not depend on their arrival.
func (p *process) calls() []*walkRequest {
	p.held.mu.Lock()
	defer p.held.mu.Unlock()
	held := p.held.calls
	slices.SortStableFunc(held, func(a, b *heldCall) int { return cmp.Compare(a.request.identity, b.request.identity) })
	calls := make([]*walkRequest, len(held))
	for i, h := range held {
		calls[i] = h.request
	}
	return calls
}

func (p *process) answer(call int, a *walkAnswer) {
	p.held.mu.Lock()
	defer p.held.mu.Unlock()
	h := p.held.calls[call]
	p.held.calls = slices.Delete(p.held.calls, call, call+1)
	h.answer <- a
}

// Do implements policy.Transporter: it waits for the answer, or for the end of the request's context.
func (p *process) Do(req *http.Request) (*http.Response, error) {
	if req.Context().Err() != nil {
		return refuse(req)
	}
	call, req, err := p.locate(req)
	if err != nil {
		return nil, err
	}
	request, err := newWalkRequest(call, req)
	if err != nil {
		return nil, err
	}
	h := &heldCall{request: request, answer: make(chan *walkAnswer, 1)}
	if !p.held.hold(h) {
		return storagetest.DiesBefore.Meet(call, req, nil)
	}
	select {
	case a := <-h.answer:
		if a == nil {
			return storagetest.DiesBefore.Meet(call, req, nil)
		}
		return a.response(req), nil
	case <-req.Context().Done():
		p.held.leave(h)
		return refuse(req)
	}
}
