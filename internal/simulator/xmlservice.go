package simulator

import (
	"net/http"
	"sync"
)

// xmlService is what the queue and the blob service of an account have in common. One request is served at a time.
type xmlService struct {
	clock *Clock
	dice  *dice
	chaos *Chaos

	mu     sync.Mutex
	serial uint64 // of requests and what they make
}

// count numbers a request or a message, but under a still clock, where ids must not tell what came before.
func (s *xmlService) count() {
	if !s.clock.still {
		s.serial++
	}
}

// answer serves one request.
func (s *xmlService) answer(req *http.Request, body []byte, dispatch func(*xmlCall) (*answer, *Fault)) *answer {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count()
	c := newXMLCall(req, body, s.clock.Now(), s.serial)
	a, err := dispatch(c)
	if err != nil {
		a = c.refuse(err)
	}
	return c.finish(a)
}
