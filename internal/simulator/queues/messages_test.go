package queues

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"
	"github.com/google/go-cmp/cmp"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/environment"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

const week = 7 * 24 * 60 * 60

func message(text string) string {
	return "<QueueMessage><MessageText>" + text + "</MessageText></QueueMessage>"
}

func TestMessagePutLimits(t *testing.T) {
	q := newTestQueues(t, 1)
	q.queue(t, "orders")
	full := strings.Repeat("x", 64<<10)
	for name, test := range map[string]struct {
		query, body string
		status      int
		code        string
	}{
		"plain":                   {"", message("x"), 201, ""},
		"empty":                   {"", message(""), 201, ""},
		"64 KiB":                  {"", message(full), 201, ""},
		"64 KiB and one":          {"", message(full + "x"), 413, "RequestBodyTooLarge"},
		"64 KiB in two-byte":      {"", message(strings.Repeat("ä", 32<<10)), 201, ""},
		"one more of two bytes":   {"", message(strings.Repeat("ä", 32<<10) + "x"), 413, "RequestBodyTooLarge"},
		"64 KiB escaped":          {"", message(strings.Repeat("&lt;", 64<<10)), 201, ""},
		"visible at once":         {"visibilitytimeout=0", message("x"), 201, ""},
		"visible before time":     {"visibilitytimeout=-1", message("x"), 400, "OutOfRangeQueryParameterValue"},
		"a week":                  {fmt.Sprintf("visibilitytimeout=%d&messagettl=-1", week), message("x"), 201, ""},
		"a week and one":          {fmt.Sprintf("visibilitytimeout=%d&messagettl=-1", week+1), message("x"), 400, "OutOfRangeQueryParameterValue"},
		"no number":               {"visibilitytimeout=soon", message("x"), 400, "InvalidQueryParameterValue"},
		"ttl 1":                   {"messagettl=1", message("x"), 201, ""},
		"ttl 0":                   {"messagettl=0", message("x"), 400, "InvalidQueryParameterValue"},
		"ttl -1":                  {"messagettl=-1", message("x"), 201, ""},
		"ttl -2":                  {"messagettl=-2", message("x"), 400, "InvalidQueryParameterValue"},
		"ttl of ages":             {"messagettl=9223372036854775807", message("x"), 201, ""},
		"visible before the end":  {"visibilitytimeout=9&messagettl=10", message("x"), 201, ""},
		"visible at the end":      {"visibilitytimeout=10&messagettl=10", message("x"), 400, "InvalidQueryParameterValue"},
		"never visible":           {fmt.Sprintf("visibilitytimeout=%d", week), message("x"), 400, "InvalidQueryParameterValue"},
		"no body":                 {"", "", 400, "InvalidXmlDocument"},
		"no document":             {"", "hello", 400, "InvalidXmlDocument"},
		"other document":          {"", "<Message><MessageText>x</MessageText></Message>", 400, "InvalidXmlDocument"},
		"no text":                 {"", "<QueueMessage></QueueMessage>", 400, "InvalidXmlDocument"},
		"cut off":                 {"", "<QueueMessage><MessageText>x</MessageText>", 400, "InvalidXmlDocument"},
		"more after it":           {"", message("x") + message("y"), 400, "InvalidXmlDocument"},
		"space and comment after": {"", message("x") + "\n<!-- end -->", 201, ""},
		"tab":                     {"", message("\t"), 201, ""},
		"control character":       {"", message("\x01"), 400, "InvalidXmlDocument"},
		"control by reference":    {"", message("&#x1;"), 400, "InvalidXmlDocument"},
		"NUL":                     {"", message("\x00"), 400, "InvalidXmlDocument"},
		"U+FFFE":                  {"", message("\ufffe"), 400, "InvalidXmlDocument"},
		"not UTF-8":               {"", message("\xff"), 400, "InvalidXmlDocument"},
		"unknown entity":          {"", message("&nbsp;"), 400, "InvalidXmlDocument"},
	} {
		t.Run(name, func(t *testing.T) {
			q.Want(t, probe.Call{Method: "POST", Target: "/orders/messages?" + test.query, Body: test.body}, test.status, test.code)
		})
	}
}

func TestMessageGetLimits(t *testing.T) {
	q := newTestQueues(t, 1)
	q.queue(t, "orders")
	for query, code := range map[string]string{
		"":                    "",
		"numofmessages=1":     "",
		"numofmessages=0":     "OutOfRangeQueryParameterValue",
		"numofmessages=32":    "",
		"numofmessages=33":    "OutOfRangeQueryParameterValue",
		"visibilitytimeout=1": "",
		"visibilitytimeout=0": "OutOfRangeQueryParameterValue",
		fmt.Sprintf("visibilitytimeout=%d", week):   "",
		fmt.Sprintf("visibilitytimeout=%d", week+1): "OutOfRangeQueryParameterValue",
		"peekonly=true&numofmessages=32":            "",
		"peekonly=true&numofmessages=33":            "OutOfRangeQueryParameterValue",
		"peekonly=true&numofmessages=0":             "OutOfRangeQueryParameterValue",
	} {
		status := map[bool]int{true: 200, false: 400}[code == ""]
		q.Want(t, probe.Call{Method: "GET", Target: "/orders/messages?" + query}, status, code)
	}
}

// enqueue puts messages, each with its text.
func enqueue(t *testing.T, q *azqueue.QueueClient, texts ...string) {
	t.Helper()
	for _, text := range texts {
		assert.Check(t, assert.Err(q.EnqueueMessage(probe.Context(t), text, nil)))
	}
}

// dequeue gets up to 32 messages for the given time and returns their texts with their counts.
func dequeue(t *testing.T, q *azqueue.QueueClient, hide time.Duration) []string {
	t.Helper()
	got, err := q.DequeueMessages(probe.Context(t), &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(32)),
		VisibilityTimeout: to.Ptr(int32(hide / time.Second))})
	assert.Check(t, err)
	texts := []string{}
	for _, m := range got.Messages {
		texts = append(texts, fmt.Sprintf("%s %d", *m.MessageText, *m.DequeueCount))
	}
	return texts
}

func wantTexts(t *testing.T, got []string, want ...string) {
	t.Helper()
	assert.Slices(t, got, want, "messages")
}

func TestMessageVisibility(t *testing.T) {
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	enqueue(t, orders, "a", "b", " <&> \n\tü")
	wantTexts(t, dequeue(t, orders, 30*time.Second), "a 1", "b 1", " <&> \n\tü 1")
	wantTexts(t, dequeue(t, orders, time.Second))
	q.clock.Advance(30*time.Second - 100)
	wantTexts(t, dequeue(t, orders, time.Second))
	q.clock.Advance(100)
	wantTexts(t, dequeue(t, orders, time.Second), "a 2", "b 2", " <&> \n\tü 2")

	// Without a time of its own, a get hides a message for 30 seconds.
	q.clock.Advance(time.Second)
	got := assert.Must[azqueue.DequeueMessagesResponse](t)(orders.DequeueMessage(probe.Context(t), nil))
	if m := got.Messages[0]; *m.DequeueCount != 3 || !m.TimeNextVisible.Equal(probe.Start().Add(61*time.Second)) {
		t.Errorf("count %d, next visible %v", *m.DequeueCount, *m.TimeNextVisible)
	}
}

func TestMessagePutVisibility(t *testing.T) {
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	put, err := orders.EnqueueMessage(probe.Context(t), "later", &azqueue.EnqueueMessageOptions{VisibilityTimeout: to.Ptr(int32(60))})
	assert.Check(t, err)
	m := put.Messages[0]
	if !m.InsertionTime.Equal(probe.Start()) || !m.TimeNextVisible.Equal(probe.Start().Add(time.Minute)) || !m.ExpirationTime.Equal(probe.Start().Add(week*time.Second)) {
		t.Errorf("inserted %v, visible %v, expires %v", *m.InsertionTime, *m.TimeNextVisible, *m.ExpirationTime)
	}
	if !regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`).MatchString(*m.MessageID) {
		t.Errorf("id %q", *m.MessageID)
	}
	q.clock.Advance(time.Minute - 100)
	wantTexts(t, dequeue(t, orders, time.Second))
	q.clock.Advance(100)
	wantTexts(t, dequeue(t, orders, time.Second), "later 1")
	// The receipt from the put was good until the get.
	probe.WantError(t, assert.Err(orders.DeleteMessage(probe.Context(t), *m.MessageID, *m.PopReceipt, nil)), 404, "MessageNotFound")
}

func TestMessageReceiptOfPut(t *testing.T) {
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	put := assert.Must[azqueue.EnqueueMessagesResponse](t)(orders.EnqueueMessage(probe.Context(t), "x", nil))
	up, err := orders.UpdateMessage(probe.Context(t), *put.Messages[0].MessageID, *put.Messages[0].PopReceipt, "y", nil)
	assert.Check(t, err)
	assert.Check(t, assert.Err(orders.DeleteMessage(probe.Context(t), *put.Messages[0].MessageID, *up.PopReceipt, nil)))
}

func TestMessageExpiry(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	put := func(text string, ttl int32) {
		assert.Check(t, assert.Err(orders.EnqueueMessage(ctx, text, &azqueue.EnqueueMessageOptions{TimeToLive: &ttl})))
	}
	put("short", 10)
	put("held", 10)
	put("ever", -1)
	enqueue(t, orders, "week")
	q.clock.Advance(10*time.Second - 100)
	wantCount(t, orders, 4)
	q.clock.Advance(100)
	wantCount(t, orders, 2)
	wantTexts(t, dequeue(t, orders, time.Second), "ever 1", "week 1")
	q.clock.Advance(week*time.Second - 10*time.Second)
	wantTexts(t, dequeue(t, orders, time.Second), "ever 2")
	q.clock.Advance(100 * 365 * 24 * time.Hour)
	wantTexts(t, dequeue(t, orders, time.Second), "ever 3")
	got := assert.Must[azqueue.PeekMessagesResponse](t)(orders.PeekMessage(ctx, nil))
	assert.Equal(t, len(got.Messages), 0, "a hidden message can be peeked")
}

func TestMessageExpiryWhileHeld(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	assert.Check(t, assert.Err(orders.EnqueueMessage(ctx, "x", &azqueue.EnqueueMessageOptions{TimeToLive: to.Ptr(int32(10))})))
	got := assert.Must[azqueue.DequeueMessagesResponse](t)(orders.DequeueMessage(ctx, nil))
	id, receipt := *got.Messages[0].MessageID, *got.Messages[0].PopReceipt
	update := func(seconds int32) error {
		up, err := orders.UpdateMessage(ctx, id, receipt, "x", &azqueue.UpdateMessageOptions{VisibilityTimeout: &seconds})
		if err == nil {
			receipt = *up.PopReceipt
		}
		return err
	}
	assert.Check(t, update(10))
	probe.WantError(t, update(11), 400, "InvalidQueryParameterValue")
	q.clock.Advance(10 * time.Second)
	probe.WantError(t, update(0), 404, "MessageNotFound")
	probe.WantError(t, assert.Err(orders.DeleteMessage(ctx, id, receipt, nil)), 404, "MessageNotFound")
}

func wantCount(t *testing.T, q *azqueue.QueueClient, want int64) {
	t.Helper()
	got := assert.Must[azqueue.GetQueuePropertiesResponse](t)(q.GetProperties(probe.Context(t), nil))
	assert.Equal(t, *got.ApproximateMessagesCount, want, "messages counted")
}

func TestMessagePeek(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	enqueue(t, orders, "a", "b", "c")
	for range 2 {
		got, err := orders.PeekMessages(ctx, &azqueue.PeekMessagesOptions{NumberOfMessages: to.Ptr(int32(2))})
		assert.Check(t, err)
		if len(got.Messages) != 2 || *got.Messages[0].MessageText != "a" || *got.Messages[1].MessageText != "b" || *got.Messages[0].DequeueCount != 0 {
			t.Fatalf("peeked %v", got.Messages)
		}
	}
	raw := q.Want(t, probe.Call{Method: "GET", Target: "/orders/messages?peekonly=true"}, 200, "")
	if strings.Contains(string(raw.Body), "PopReceipt") || strings.Contains(string(raw.Body), "TimeNextVisible") {
		t.Errorf("a peek gives a receipt: %s", raw.Body)
	}
	wantTexts(t, dequeue(t, orders, time.Second), "a 1", "b 1", "c 1")
}

func TestMessageReceipts(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	enqueue(t, orders, "a", "b")
	got, err := orders.DequeueMessages(ctx, &azqueue.DequeueMessagesOptions{NumberOfMessages: to.Ptr(int32(2))})
	assert.Check(t, err)
	a, b := got.Messages[0], got.Messages[1]
	if *a.PopReceipt == *b.PopReceipt {
		t.Fatal("one receipt for two messages")
	}
	path := "/orders/messages/" + *a.MessageID + "?popreceipt="
	at := func(id, receipt string) string {
		return "/orders/messages/" + id + "?visibilitytimeout=0&popreceipt=" + url.QueryEscape(receipt)
	}
	for name, test := range map[string]struct {
		target string
		status int
		code   string
	}{
		"another message's": {at(*a.MessageID, *b.PopReceipt), 400, "PopReceiptMismatch"},
		"no receipt":        {at(*a.MessageID, "AAAA"), 400, "InvalidQueryParameterValue"},
		"not base64":        {at(*a.MessageID, "!"), 400, "InvalidQueryParameterValue"},
		"missing":           {path, 400, "MissingRequiredQueryParameter"},
		"unknown message":   {at("0000", *a.PopReceipt), 404, "MessageNotFound"},
	} {
		t.Run(name, func(t *testing.T) {
			q.Want(t, probe.Call{Method: "DELETE", Target: test.target}, test.status, test.code)
			q.Want(t, probe.Call{Method: "PUT", Target: test.target, Body: message("x")}, test.status, test.code)
		})
	}

	// A receipt outlives the time it was given for, until somebody else gets the message.
	q.clock.Advance(31 * time.Second)
	assert.Check(t, assert.Err(orders.DeleteMessage(ctx, *b.MessageID, *b.PopReceipt, nil)))
	wantTexts(t, dequeue(t, orders, time.Second), "a 2")
	probe.WantError(t, assert.Err(orders.UpdateMessage(ctx, *a.MessageID, *a.PopReceipt, "x", nil)), 404, "MessageNotFound")
	wantCount(t, orders, 1)
}

func TestMessageUpdate(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	enqueue(t, orders, "a")
	got := assert.Must[azqueue.DequeueMessagesResponse](t)(orders.DequeueMessage(ctx, nil))
	id, first := *got.Messages[0].MessageID, *got.Messages[0].PopReceipt
	up, err := orders.UpdateMessage(ctx, id, first, "b", &azqueue.UpdateMessageOptions{VisibilityTimeout: to.Ptr(int32(60))})
	assert.Check(t, err)
	if *up.PopReceipt == first || !up.TimeNextVisible.Equal(probe.Start().Add(time.Minute)) {
		t.Errorf("receipt %s, next visible %v", *up.PopReceipt, *up.TimeNextVisible)
	}
	probe.WantError(t, assert.Err(orders.DeleteMessage(ctx, id, first, nil)), 404, "MessageNotFound")
	receipt := *up.PopReceipt
	target := func(query string) string {
		return "/orders/messages/" + id + "?popreceipt=" + url.QueryEscape(receipt) + query
	}
	for name, test := range map[string]struct {
		query, body string
		status      int
		code        string
	}{
		"no time":        {"", message("x"), 400, "MissingRequiredQueryParameter"},
		"before time":    {"&visibilitytimeout=-1", message("x"), 400, "OutOfRangeQueryParameterValue"},
		"week and one":   {fmt.Sprintf("&visibilitytimeout=%d", week+1), message("x"), 400, "OutOfRangeQueryParameterValue"},
		"illegal text":   {"&visibilitytimeout=1", message("\x02"), 400, "InvalidXmlDocument"},
		"64 KiB and one": {"&visibilitytimeout=1", message(strings.Repeat("x", 64<<10+1)), 413, "RequestBodyTooLarge"},
		"a week":         {fmt.Sprintf("&visibilitytimeout=%d", week), message("c"), 204, ""},
	} {
		t.Run(name, func(t *testing.T) {
			// A refused update leaves the message and its receipt alone.
			a := q.Want(t, probe.Call{Method: "PUT", Target: target(test.query), Body: test.body}, test.status, test.code)
			if r := a.Header.Get("x-ms-popreceipt"); r != "" {
				receipt = r
			}
		})
	}
	// Without a body the text stays, and a time of 0 makes the message visible.
	q.Want(t, probe.Call{Method: "PUT", Target: target("&visibilitytimeout=0")}, 204, "")
	wantTexts(t, dequeue(t, orders, time.Second), "c 2")
}

func TestMessageClear(t *testing.T) {
	ctx := probe.Context(t)
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	enqueue(t, orders, "a", "b")
	got := assert.Must[azqueue.DequeueMessagesResponse](t)(orders.DequeueMessage(ctx, nil))
	wantCount(t, orders, 2)
	assert.Check(t, assert.Err(orders.ClearMessages(ctx, nil)))
	wantCount(t, orders, 0)
	probe.WantError(t, assert.Err(orders.DeleteMessage(ctx, *got.Messages[0].MessageID, *got.Messages[0].PopReceipt, nil)), 404, "MessageNotFound")
}

// chaosRun puts and gets with the given chaos, and returns what each get handed out.
func chaosRun(t *testing.T, seed uint64, chaos environment.Chaos) (texts []string, stale map[string]int) {
	t.Helper()
	ctx, q := probe.Context(t), newTestQueues(t, seed)
	orders := q.queue(t, "orders")
	*q.chaos = chaos
	for i := range 20 {
		enqueue(t, orders, fmt.Sprintf("%02d", i))
	}
	var held []*azqueue.DequeuedMessage
	for range 40 {
		got := assert.Must[azqueue.DequeueMessagesResponse](t)(orders.DequeueMessage(ctx, nil))
		for _, m := range got.Messages {
			texts = append(texts, *m.MessageText)
			held = append(held, m)
		}
	}
	stale = map[string]int{}
	for _, m := range held {
		stale[deleteCode(ctx, orders, m)]++
	}
	wantCount(t, orders, 0)
	return texts, stale
}

func deleteCode(ctx context.Context, q *azqueue.QueueClient, m *azqueue.DequeuedMessage) string {
	_, err := q.DeleteMessage(ctx, *m.MessageID, *m.PopReceipt, nil)
	if err == nil {
		return ""
	}
	code, _, _ := strings.Cut(strings.SplitAfter(err.Error(), "ERROR CODE: ")[1], "\n")
	return code
}

func TestMessageChaos(t *testing.T) {
	var inOrder []string
	for i := range 20 {
		inOrder = append(inOrder, fmt.Sprintf("%02d", i))
	}
	calm, stale := chaosRun(t, 1, environment.Chaos{})
	if diff := cmp.Diff(inOrder, calm); diff != "" || stale[""] != 20 {
		t.Errorf("calm: %v %s", stale, diff)
	}

	shuffled, stale := chaosRun(t, 1, environment.Chaos{QueueOutOfOrder: 0.5})
	again, _ := chaosRun(t, 1, environment.Chaos{QueueOutOfOrder: 0.5})
	other, _ := chaosRun(t, 2, environment.Chaos{QueueOutOfOrder: 0.5})
	if !slices.Equal(shuffled, again) || slices.Equal(shuffled, other) || slices.Equal(shuffled, calm) {
		t.Errorf("out of order: %v\nthe same seed: %v\nanother: %v", shuffled, again, other)
	}
	if sorted := slices.Sorted(slices.Values(shuffled)); !slices.Equal(sorted, inOrder) || stale[""] != 20 {
		t.Errorf("out of order: %v, %v", sorted, stale)
	}

	twice, stale := chaosRun(t, 3, environment.Chaos{QueueTwice: 0.3})
	if len(twice) <= 20 {
		t.Errorf("nothing handed out twice: %v", twice)
	}
	// Each message was deleted once, with its last receipt; the receipts before it were refused in the service's two ways.
	if stale[""] != 20 || stale["MessageNotFound"] == 0 || stale["PopReceiptMismatch"] == 0 {
		t.Errorf("handed out twice: %v", stale)
	}
	assert.Slices(t, slices.Compact(slices.Sorted(slices.Values(twice))), inOrder, "handed out twice")
}

// A message that was put to be hidden, and never handed out, stays hidden whatever chaos there is: its writer relies on it.
func TestMessageChaosKeepsHidden(t *testing.T) {
	q := newTestQueues(t, 1)
	orders := q.queue(t, "orders")
	_, err := orders.EnqueueMessage(probe.Context(t), "later", &azqueue.EnqueueMessageOptions{VisibilityTimeout: to.Ptr(int32(60))})
	assert.Check(t, err)
	*q.chaos = environment.Chaos{QueueTwice: 1, QueueOutOfOrder: 1}
	wantTexts(t, dequeue(t, orders, time.Second))
}
