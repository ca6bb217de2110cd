package simulator

import (
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/tables/request"
)

// failure is a failure of the service or of the network, which the request itself has not caused.
type failure struct {
	fault   *protocol.Fault
	applied bool // the request is carried out nevertheless
	inside  bool // the request is a transaction, and the failure is a part of a response with status 202
}

// failure decides at random whether and how a request fails. nil means that it does not fail.
func (s *Simulator) failure(transaction bool) *failure {
	f := &failure{}
	switch {
	case s.dice.Chance(s.chaos.Busy):
		f.fault, f.applied = protocol.ServerBusy(), s.dice.Chance(s.chaos.Applied)
		if f.applied {
			f.fault = f.fault.WithoutCode()
		}
	case s.dice.Chance(s.chaos.Internal):
		f.fault = protocol.Refuse(http.StatusInternalServerError, "InternalError", "Server encountered an internal error. Please try again after some time.")
		f.applied = s.dice.Chance(s.chaos.Applied)
	case s.dice.Chance(s.chaos.Limited):
		f.fault = protocol.Refuse(http.StatusTooManyRequests, "TooManyRequests", "The request rate is too large.")
	default:
		return nil
	}
	if transaction && s.dice.Chance(0.5) {
		f.inside = true
		if s.dice.Chance(0.5) {
			f.fault = f.fault.WithoutCode()
		}
	}
	return f
}

// answer returns the response to the failed request.
func (f *failure) answer(of service, c *protocol.Call) *protocol.Answer {
	switch {
	case f.inside:
		return request.NewCall(c).RefuseBatch(f.fault)
	case f.fault.Code == "":
		return gatewayAnswer(f.fault.Status)
	}
	return of.Refuse(c, f.fault)
}

// gatewayAnswer returns the response of a gateway between client and service: it has no code and no message.
func gatewayAnswer(status int) *protocol.Answer {
	a := protocol.NewAnswer(status)
	a.Header["Content-Type"] = []string{"text/html"}
	a.Body = []byte("<html><body>" + http.StatusText(status) + "</body></html>")
	return a
}
