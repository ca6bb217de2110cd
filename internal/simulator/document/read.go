package simulator

import (
	"encoding/xml"
	"io"
	"net/http"
	"strings"
)

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

func xmlInvalidDocument(reason string) *Fault {
	return refuse(http.StatusBadRequest, "InvalidXmlDocument", "XML specified is not syntactically valid.").
		with("Reason", reason)
}

func xmlInvalidNode(name, value string) *Fault {
	return refuse(http.StatusBadRequest, "InvalidXmlNodeValue", "The value for one of the XML nodes is not in the correct format.").
		with("XmlNodeName", name).with("XmlNodeValue", value)
}
