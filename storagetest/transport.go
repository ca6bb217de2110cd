package storagetest

import (
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
)

// WithTransport returns the same service with another transport in its ClientOptions: the one that wrap
// returns for inner, the service's own transport.
func (s *Service) WithTransport(wrap func(inner policy.Transporter) policy.Transporter) *Service {
	inner := s.ClientOptions.Transport
	if inner == nil {
		inner = http.DefaultClient
	}
	wrapped := *s
	wrapped.ClientOptions.Transport = wrap(inner)
	return &wrapped
}

// Faulty returns the same service for one client process whose calls meet the injector's faults, and a record of these calls. Clients
// made from s itself meet no faults, so a test can write through the faulty service and read through s:
//
//	faulty, calls := s.Faulty(storagetest.OnIndex(1, storagetest.LostAnswer))
func (s *Service) Faulty(injector Injector) (*Service, *Faults) {
	var faults *Faults
	front := func(inner policy.Transporter) policy.Transporter {
		faults = NewFaults(inner, injector)
		faults.locate = newLocator(s)
		return faults
	}
	faulty := s.WithTransport(func(inner policy.Transporter) policy.Transporter {
		if gate, ok := inner.(interface {
			Behind(wrap func(policy.Transporter) policy.Transporter) policy.Transporter
		}); ok {
			return gate.Behind(front)
		}
		return front(inner)
	})
	return faulty, faults
}

// WithRetries returns the same service with ClientOptions under which the SDK repeats each failed request up to n times, almost at
// once; with n = 0, never.
func (s *Service) WithRetries(n int32) *Service {
	again := *s
	again.ClientOptions.Retry = quickRetries(n)
	return &again
}

// CallNamer returns a function for transports and policies of your own: it names the call that a request
// makes. Send the request that the function returns in place of the given one, since it reads the body of a
// transaction to find the table.
func (s *Service) CallNamer() func(req *http.Request) (Call, *http.Request, error) {
	return newLocator(s).call
}
