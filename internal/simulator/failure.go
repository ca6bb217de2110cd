package simulator

import "net/http"

// failure is what a request meets for no fault of its own.
type failure struct {
	fault   *Fault
	applied bool // the request is carried out all the same
	inside  bool // it is a transaction, and the failure is the part of an answer with status 202
}

// failure decides whether a request fails, and how; nil is not at all.
func (s *Simulator) failure(transaction bool) *failure {
	f := &failure{}
	switch {
	case s.dice.chance(s.chaos.Busy):
		f.fault, f.applied = faultServerBusy(), s.dice.chance(s.chaos.Applied)
		if f.applied {
			f.fault = f.fault.WithoutCode()
		}
	case s.dice.chance(s.chaos.Internal):
		f.fault, f.applied = faultInternal(), s.dice.chance(s.chaos.Applied)
	case s.dice.chance(s.chaos.Limited):
		f.fault = faultTooMany()
	default:
		return nil
	}
	if transaction && s.dice.chance(0.5) {
		f.inside = true
		if s.dice.chance(0.5) {
			f.fault = f.fault.WithoutCode()
		}
	}
	return f
}

// answer is what the request to a service is answered with.
func (f *failure) answer(of service, c *Call) *answer {
	switch {
	case f.inside:
		return newTableCall(c).batchRefusal(f.fault)
	case f.fault.Code == "":
		return gatewayAnswer(f.fault.Status)
	}
	return of.Refuse(c, f.fault)
}

// gatewayAnswer is the answer of something between client and service, which knows neither code nor message.
func gatewayAnswer(status int) *answer {
	a := newAnswer(status)
	a.header["Content-Type"] = []string{"text/html"}
	a.body = []byte("<html><body>" + http.StatusText(status) + "</body></html>")
	return a
}

func faultTooMany() *Fault {
	return refuse(http.StatusTooManyRequests, "TooManyRequests", "The request rate is too large.")
}

func faultInternal() *Fault {
	return refuse(http.StatusInternalServerError, "InternalError", "Server encountered an internal error. Please try again after some time.")
}
