package exchange

import (
	"sync"

	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Service is what the queue and the blob service of an account have in common. One request is served at a time.
type Service struct {
	Clock *environment.Clock
	Dice  *environment.Dice
	Chaos *environment.Chaos

	Mu     sync.Mutex
	Serial uint64 // of requests and what they make
}

// Count numbers a request or a message, but under a still clock, where ids must not tell what came before.
func (s *Service) Count() {
	if !s.Clock.Still() {
		s.Serial++
	}
}

// Refuse answers a request with a fault.
func (s *Service) Refuse(c *protocol.Call, f *protocol.Fault) *protocol.Answer { return Refuse(c, f) }

// Refuse answers a request with a fault.
func Refuse(call *protocol.Call, f *protocol.Fault) *protocol.Answer {
	c := newCall(call)
	return c.finish(c.refuse(f))
}

// Answer serves one request.
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
