package exchange

import (
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Service is the common part of the queue and blob services of an account. It serves one request at a time.
type Service struct {
	Clock *environment.Clock
	Dice  *environment.Dice
	Chaos *environment.Chaos

	Mu     sync.Mutex
	Serial uint64 // number of requests, plus number of messages that they have made
}

// Count increments Serial for a request or message. On a still clock it does not, because ids must not show the order of
// requests.
func (s *Service) Count() {
	if !s.Clock.Still() {
		s.Serial++
	}
}

// Refuse returns the response for a fault.
func (s *Service) Refuse(c *protocol.Call, f *protocol.Fault) *protocol.Answer { return Refuse(c, f) }

// Refuse returns the response for a fault.
func Refuse(call *protocol.Call, f *protocol.Fault) *protocol.Answer {
	c := newCall(call)
	return c.finish(c.refuse(f))
}

// Answer serves one request by dispatch.
func (s *Service) Answer(call *protocol.Call, dispatch func(*Call) (*protocol.Answer, *protocol.Fault)) *protocol.Answer {
	s.Mu.Lock()
	defer s.Mu.Unlock()
	s.Count()
	c := newCall(&protocol.Call{Req: call.Req, Body: call.Body, Serial: s.Serial, Now: s.Clock.Now()})
	a, err := dispatch(c)
	if err != nil {
		a = c.refuse(err)
	}
	return c.finish(a)
}
