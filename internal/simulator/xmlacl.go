package simulator

import (
	"encoding/xml"
	"fmt"
	"io"
	"strings"
)

// xmlPolicy is a stored access policy of a queue or a container. Start, expiry and permission are as they were written, empty
// where the policy leaves them to the signature.
type xmlPolicy struct {
	ID         string `xml:"Id"`
	Start      string `xml:"AccessPolicy>Start"`
	Expiry     string `xml:"AccessPolicy>Expiry"`
	Permission string `xml:"AccessPolicy>Permission"`
}

const (
	xmlMaxPolicies = 5
	xmlMaxPolicyID = 64
)

// The letters of the rights that a policy may give, by service.
const (
	tableRights     = "raud"
	queueRights     = "raup"
	containerRights = "racwdxyltmeopi"
)

// parseXMLPolicies reads the body of a request that sets the policies; an empty body clears them. rights are the letters that
// the service knows.
func parseXMLPolicies(body []byte, rights string) ([]xmlPolicy, *Fault) {
	if len(body) == 0 {
		return nil, nil
	}
	var document struct {
		XMLName  xml.Name    `xml:"SignedIdentifiers"`
		Policies []xmlPolicy `xml:"SignedIdentifier"`
	}
	if err := parseXML(body, &document); err != nil {
		return nil, err
	}
	if len(document.Policies) > xmlMaxPolicies {
		return nil, xmlInvalidDocument(fmt.Sprintf("%d signed identifiers, at most %d", len(document.Policies), xmlMaxPolicies))
	}
	seen := map[string]bool{}
	for _, p := range document.Policies {
		switch {
		case len(p.ID) > xmlMaxPolicyID:
			return nil, xmlInvalidDocument(fmt.Sprintf("an Id of %d characters, at most %d", len(p.ID), xmlMaxPolicyID))
		case p.ID == "" || seen[p.ID]:
			return nil, xmlInvalidNode("Id", p.ID)
		case strings.Trim(p.Permission, rights) != "":
			return nil, xmlInvalidNode("Permission", p.Permission)
		}
		seen[p.ID] = true
	}
	return document.Policies, nil
}

// writeXMLPolicies answers with the policies.
func writeXMLPolicies(a *answer, policies []xmlPolicy) *answer {
	w := newXMLWriter("SignedIdentifiers")
	for _, p := range policies {
		w.begin("SignedIdentifier")
		w.element("Id", p.ID)
		if p.Start != "" || p.Expiry != "" || p.Permission != "" { // one that says nothing comes back without it
			w.begin("AccessPolicy")
			w.optional("Start", p.Start)
			w.optional("Expiry", p.Expiry)
			w.optional("Permission", p.Permission)
			w.end()
		}
		w.end()
	}
	return w.answer(a)
}

// findXMLPolicy finds the policy that a signature names.
func findXMLPolicy(policies []xmlPolicy, id string) (xmlPolicy, bool) {
	for _, p := range policies {
		if p.ID == id {
			return p, true
		}
	}
	return xmlPolicy{}, false
}

// parseXML reads a request's body. It refuses, as the services do, what is no well-formed document of UTF-8: characters
// that XML cannot hold, written out or as references, among them.
func parseXML(body []byte, document any) *Fault {
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(string(body), "\ufeff")))
	if err := d.Decode(document); err != nil {
		return xmlInvalidDocument(err.Error())
	}
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return xmlInvalidDocument(err.Error())
		}
		_, comment := token.(xml.Comment)
		text, ok := token.(xml.CharData)
		if !comment && (!ok || strings.TrimSpace(string(text)) != "") {
			return xmlInvalidDocument("the document goes on after its root element")
		}
	}
}
