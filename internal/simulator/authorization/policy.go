package authorization

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/document"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
	"github.com/tablepatterns/tablepatterns/internal/simulator/snapshot"
)

// Policy is a stored access policy of a table, queue or container. Start, expiry and permission are as they
// were sent; a signature that names the policy must contain each of them that is empty.
type Policy struct {
	ID         string `xml:"Id"`
	Start      string `xml:"AccessPolicy>Start"`
	Expiry     string `xml:"AccessPolicy>Expiry"`
	Permission string `xml:"AccessPolicy>Permission"`
}

// Policies are the stored access policies of one resource.
type Policies []Policy

const (
	maxPolicies = 5
	maxPolicyID = 64
)

// ReadPolicies parses the body of a request that sets the policies; an empty body removes all. rights are the letters of the
// permissions that the service supports.
func ReadPolicies(body []byte, rights string) (Policies, *protocol.Fault) {
	if len(body) == 0 {
		return nil, nil
	}
	var sent struct {
		XMLName  xml.Name `xml:"SignedIdentifiers"`
		Policies Policies `xml:"SignedIdentifier"`
	}
	if err := document.Parse(body, &sent); err != nil {
		return nil, err
	}
	if len(sent.Policies) > maxPolicies {
		return nil, document.Invalid(fmt.Sprintf("%d signed identifiers, at most %d", len(sent.Policies), maxPolicies))
	}
	seen := map[string]bool{}
	for _, p := range sent.Policies {
		switch {
		case len(p.ID) > maxPolicyID:
			return nil, document.Invalid(fmt.Sprintf("an Id of %d characters, at most %d", len(p.ID), maxPolicyID))
		case p.ID == "" || seen[p.ID]:
			return nil, document.InvalidNode("Id", p.ID)
		case strings.Trim(p.Permission, rights) != "":
			return nil, document.InvalidNode("Permission", p.Permission)
		}
		seen[p.ID] = true
	}
	return sent.Policies, nil
}

// Answer makes the policies the body of a response.
func (policies Policies) Answer(a *protocol.Answer) *protocol.Answer {
	w := document.New("SignedIdentifiers")
	for _, p := range policies {
		w.Begin("SignedIdentifier")
		w.Element("Id", p.ID)
		if p.Start != "" || p.Expiry != "" || p.Permission != "" { // an empty policy is returned without this element
			w.Begin("AccessPolicy")
			w.Optional("Start", p.Start)
			w.Optional("Expiry", p.Expiry)
			w.Optional("Permission", p.Permission)
			w.End()
		}
		w.End()
	}
	return w.Answer(a)
}

// Find returns the policy that a signature names.
func (policies Policies) Find(id string) (Policy, bool) {
	for _, p := range policies {
		if p.ID == id {
			return p, true
		}
	}
	return Policy{}, false
}

// Fingerprint writes the policies.
func (policies Policies) Fingerprint(k *snapshot.Writer) {
	k.Number(uint64(len(policies)))
	for _, p := range policies {
		for _, part := range [...]string{p.ID, p.Start, p.Expiry, p.Permission} {
			k.Text(part)
		}
	}
}
