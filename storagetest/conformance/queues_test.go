package conformance

import (
	"encoding/xml"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

func queueCases() []script {
	return []script{
		{"a queue's life", queueLife},
		{"metadata of a queue", queueMetadata},
		{"a message's life", messageLife},
		{"receipts", receipts},
		{"messages to come and to go", visibility},
		{"several messages", severalMessages},
		{"bad requests for messages", badMessages},
		{"policies of a queue", queuePolicies},
	}
}

func queueLife(w *world) {
	name := w.named("{queue}", w.QueueName(w))
	at := "/" + name
	w.do(queues, "messages before", "404 QueueNotFound", "GET", at+"/messages", "")
	w.do(queues, "drop before", "404 QueueNotFound", "DELETE", at, "")
	w.do(queues, "create", "201", "PUT", at, "")
	w.do(queues, "create again", "204", "PUT", at, "")
	w.do(queues, "create again with metadata", "409 QueueAlreadyExists", "PUT", at, "", "x-ms-meta-team", "hr")
	w.do(queues, "listed", "200", "GET", "/?comp=list&prefix="+name, "")
	w.do(queues, "drop", "204", "DELETE", at, "")
	w.do(queues, "drop again", "404 QueueNotFound", "DELETE", at, "")
	w.do(queues, "put after", "404 QueueNotFound", "POST", at+"/messages", message1("x"))
	w.do(queues, "a short name", "400 OutOfRangeInput", "PUT", "/ab", "")
	w.do(queues, "a name in capitals", "400 InvalidResourceName", "PUT", "/ABC", "")
	w.do(queues, "a name with two dashes", "400 InvalidResourceName", "PUT", "/a--b", "")
}

func queueMetadata(w *world) {
	name := w.newQueue()
	at := "/" + name + "?comp=metadata"
	w.do(queues, "none", "200", "GET", at, "")
	w.do(queues, "set", "204", "PUT", at, "", "x-ms-meta-team", "hr", "x-ms-meta-city", "Bern")
	w.must(queues, "POST", "/"+name+"/messages", message1("x"))
	w.must(queues, "POST", "/"+name+"/messages", message1("y"))
	w.do(queues, "get", "200", "GET", at, "")
	w.do(queues, "set less", "204", "PUT", at, "", "x-ms-meta-team", "it")
	w.do(queues, "get less", "200", "GET", at, "")
	w.do(queues, "head", "200", "HEAD", at, "")
}

// message1 is the body that puts or updates a message.
func message1(text string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(text)) // a Builder takes everything
	return "<QueueMessage><MessageText>" + b.String() + "</MessageText></QueueMessage>"
}

// found are the messages of an answer.
type found struct {
	Messages []struct{ MessageId, PopReceipt, MessageText, DequeueCount string } `xml:"QueueMessage"`
}

func (r reply) messages(w *world) found {
	w.Helper()
	var f found
	assert.NoError(assert.Fatal(w), xml.Unmarshal([]byte(strings.TrimPrefix(r.body, "\ufeff")), &f), r.body)
	return f
}

// first names the first message of an answer as the requests about it need it.
func (r reply) first(w *world) (path, receipt string) {
	w.Helper()
	f := r.messages(w)
	if len(f.Messages) == 0 {
		w.Fatalf("no message: %d %s", r.StatusCode, r.body)
	}
	return "/messages/" + f.Messages[0].MessageId, "?popreceipt=" + url.QueryEscape(f.Messages[0].PopReceipt)
}

func messageLife(w *world) {
	name := w.newQueue()
	at := "/" + name
	w.do(queues, "get of none", "200", "GET", at+"/messages", "")
	w.do(queues, "peek of none", "200", "GET", at+"/messages?peekonly=true", "")
	put := w.do(queues, "put", "201", "POST", at+"/messages", message1("aGk="))
	w.do(queues, "peek", "200", "GET", at+"/messages?peekonly=true", "")
	got := w.do(queues, "get", "200", "GET", at+"/messages?visibilitytimeout=60", "")
	w.do(queues, "get while held", "200", "GET", at+"/messages", "")
	w.do(queues, "peek while held", "200", "GET", at+"/messages?peekonly=true", "")
	path, receipt := got.first(w)
	updated := w.do(queues, "update", "204", "PUT", at+path+receipt+"&visibilitytimeout=0", message1("bmV3"))
	w.note("a new receipt", "true", updated.Header.Get("x-ms-popreceipt") != got.messages(w).Messages[0].PopReceipt)
	again := w.do(queues, "get again", "200", "GET", at+"/messages?visibilitytimeout=60", "")
	_, receipt = again.first(w)
	w.do(queues, "update without text", "204", "PUT", at+path+receipt+"&visibilitytimeout=0", "")
	third := w.do(queues, "third get", "200", "GET", at+"/messages?visibilitytimeout=60", "")
	_, receipt = third.first(w)
	w.do(queues, "delete", "204", "DELETE", at+path+receipt, "")
	w.do(queues, "delete again", "404 MessageNotFound", "DELETE", at+path+receipt, "")
	w.do(queues, "update after", "404 MessageNotFound", "PUT", at+path+receipt+"&visibilitytimeout=0", message1("x"))
	second := w.must(queues, "POST", at+"/messages", message1("text with <, & and größer"))
	path, receipt = second.first(w)
	w.do(queues, "odd text", "200", "GET", at+"/messages?peekonly=true", "")
	w.do(queues, "delete by the receipt of the put", "204", "DELETE", at+path+receipt, "")
	path, receipt = put.first(w)
	w.do(queues, "delete of what is long gone", "404 MessageNotFound", "DELETE", at+path+receipt, "")
	w.must(queues, "POST", at+"/messages", message1("1"))
	w.do(queues, "clear", "204", "DELETE", at+"/messages", "")
	w.do(queues, "cleared", "200", "GET", at+"/messages", "")
}

func receipts(w *world) {
	name := w.newQueue()
	at := "/" + name
	put := w.must(queues, "POST", at+"/messages", message1("x"))
	path, first := put.first(w)
	got := w.must(queues, "GET", at+"/messages?visibilitytimeout=60", "")
	w.do(queues, "delete by the receipt before", "404 MessageNotFound", "DELETE", at+path+first, "")
	w.do(queues, "update by the receipt before", "404 MessageNotFound", "PUT", at+path+first+"&visibilitytimeout=0", message1("y"))
	w.do(queues, "an invalid receipt", "400 InvalidQueryParameterValue", "DELETE", at+path+"?popreceipt=nonsense", "")
	w.do(queues, "no receipt", "400 MissingRequiredQueryParameter", "DELETE", at+path, "")
	_, receipt := got.first(w)
	w.do(queues, "no visibility", "400 MissingRequiredQueryParameter", "PUT", at+path+receipt, message1("y"))
	w.do(queues, "another message", "404 MessageNotFound", "DELETE", at+"/messages/00000000-0000-0000-0000-000000000000"+receipt, "")
	w.do(queues, "the receipt of the get", "204", "DELETE", at+path+receipt, "")
}

func visibility(w *world) {
	name := w.newQueue()
	at := "/" + name
	w.do(queues, "put for later", "201", "POST", at+"/messages?visibilitytimeout=1", message1("later"))
	w.do(queues, "put for a moment", "201", "POST", at+"/messages?messagettl=2", message1("short"))
	w.do(queues, "put for ever", "201", "POST", at+"/messages?messagettl=-1&visibilitytimeout=100", message1("long"))
	w.note("at first", "short", strings.Join(w.texts(at+"/messages?peekonly=true&numofmessages=32"), " "))
	w.Wait(2500 * time.Millisecond)
	w.note("a moment later", "later", strings.Join(w.texts(at+"/messages?peekonly=true&numofmessages=32"), " "))
	got := w.do(queues, "get for a moment", "200", "GET", at+"/messages?visibilitytimeout=1", "")
	w.note("held", "", strings.Join(w.texts(at+"/messages?peekonly=true"), " "))
	w.Wait(1500 * time.Millisecond)
	again := w.do(queues, "there again", "200", "GET", at+"/messages?visibilitytimeout=60", "")
	path, old := got.first(w)
	w.do(queues, "delete by the receipt of the first get", "404 MessageNotFound", "DELETE", at+path+old, "")
	path, receipt := again.first(w)
	w.do(queues, "delete", "204", "DELETE", at+path+receipt, "")
}

// texts reads messages' texts.
func (w *world) texts(path string) []string {
	var all []string
	for _, m := range w.must(queues, "GET", path, "").messages(w).Messages {
		all = append(all, m.MessageText)
	}
	return all
}

func severalMessages(w *world) {
	name := w.newQueue()
	at := "/" + name + "/messages"
	for i := range 5 {
		w.must(queues, "POST", at, message1(fmt.Sprint("m", i)))
	}
	w.do(queues, "peek two", "200", "GET", at+"?peekonly=true&numofmessages=2", "")
	got := w.do(queues, "get three", "200", "GET", at+"?numofmessages=3&visibilitytimeout=30", "").messages(w).Messages
	distinct := map[string]bool{}
	for _, m := range got {
		distinct[m.PopReceipt] = true
	}
	w.note("receipts", "3", len(distinct))
	w.note("the rest", "2", len(w.texts(at+"?numofmessages=32&visibilitytimeout=30")))
}

func badMessages(w *world) {
	name := w.newQueue()
	at := "/" + name + "/messages"
	w.do(queues, "no XML", "400 InvalidXmlDocument", "POST", at, "nonsense")
	w.do(queues, "another element", "400 InvalidXmlDocument", "POST", at, "<Message></Message>")
	w.do(queues, "none wanted", "400 OutOfRangeQueryParameterValue", "GET", at+"?numofmessages=0", "")
	w.do(queues, "too many wanted", "400 OutOfRangeQueryParameterValue", "GET", at+"?numofmessages=33", "")
	w.do(queues, "no number", "400 InvalidQueryParameterValue", "GET", at+"?numofmessages=x", "")
	w.do(queues, "hidden for no time", "400 OutOfRangeQueryParameterValue", "GET", at+"?visibilitytimeout=0", "")
	w.do(queues, "hidden longer than it lives", "400 InvalidQueryParameterValue", "POST", at+"?visibilitytimeout=10&messagettl=10", message1("x"))
	w.do(queues, "method", "405 UnsupportedHttpVerb", "PUT", at, message1("x"))
}

func queuePolicies(w *world) {
	name := w.newQueue()
	at := "/" + name + "?comp=acl"
	body := `<SignedIdentifiers><SignedIdentifier><Id>workers</Id><AccessPolicy><Start>2026-01-02T03:04:05.0000000Z</Start>` +
		`<Expiry>2030-01-02T03:04:05.0000000Z</Expiry><Permission>raup</Permission></AccessPolicy></SignedIdentifier></SignedIdentifiers>`
	w.do(queues, "none", "200", "GET", at, "")
	w.do(queues, "set", "204", "PUT", at, body)
	w.do(queues, "get", "200", "GET", at, "")
}
