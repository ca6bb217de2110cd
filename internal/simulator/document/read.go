package document

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"

	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Parse parses a request's body. Like the services, it refuses a body that is not well-formed UTF-8, including characters
// that XML does not allow, literal or as references.
func Parse(body []byte, document any) *protocol.Fault {
	d := xml.NewDecoder(strings.NewReader(strings.TrimPrefix(string(body), "\ufeff")))
	if err := d.Decode(document); err != nil {
		return Invalid(err.Error())
	}
	for {
		token, err := d.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return Invalid(err.Error())
		}
		_, comment := token.(xml.Comment)
		text, ok := token.(xml.CharData)
		if !comment && (!ok || strings.TrimSpace(string(text)) != "") {
			return Invalid("the document goes on after its root element")
		}
	}
}

// Invalid returns the refusal of a document, with a reason.
func Invalid(reason string) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid.").
		With("Reason", reason)
}

// InvalidNode returns the refusal of the text of an element.
func InvalidNode(name, value string) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "InvalidXmlNodeValue", "The value for one of the XML nodes is not in the correct format.").
		With("XmlNodeName", name).With("XmlNodeValue", value)
}
