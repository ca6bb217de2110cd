package simulator

import (
	"sync"
)

// xmlService is what the queue and the blob service of an account have in common. One request is served at a time.
type xmlService struct {
	clock *Clock
	dice  *Dice
	chaos *Chaos

	mu     sync.Mutex
	serial uint64 // of requests and what they make
}

// count numbers a request or a message, but under a still clock, where ids must not tell what came before.
func (s *xmlService) count() {
	if !s.clock.Still() {
		s.serial++
	}
}

// Refuse answers a request with a fault.
func (s *xmlService) Refuse(c *Call, f *Fault) *answer { return refuseXML(c, f) }

// refuseXML answers a request with a fault.
func refuseXML(call *Call, f *Fault) *answer {
	c := newXMLCall(call)
	return c.finish(c.refuse(f))
}

// answer serves one request.
func (s *xmlService) answer(call *Call, dispatch func(*xmlCall) (*answer, *Fault)) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count()
	c := newXMLCall(&Call{Req: call.Req, Body: call.Body, Serial: s.serial, Now: s.clock.Now()})
	a, err := dispatch(c)
	if err != nil {
		a = c.refuse(err)
	}
	return c.finish(a)
}
