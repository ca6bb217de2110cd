package largeentities_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestMessagesHoldNoValue: who reads the messages of the queue learns the names of blobs, and nothing of the values.
func TestMessagesHoldNoValue(t *testing.T) {
	ctx, s := context.Background(), storagetest.Open(t)
	w := (&world{async: true}).open(t, s)
	p := assert.Must[*process](t)(w.start(s))
	ok(t, p.repo.Insert(ctx, withAll(1)))
	peeked, err := eventual.QueueService(p.account).NewQueueClient(p.queue.Name()).PeekMessage(ctx, nil)
	ok(t, err)
	text := assert.Must[[]byte](t)(base64.StdEncoding.DecodeString(*peeked.Messages[0].MessageText))
	if !strings.Contains(string(text), w.table+"/Photo/") {
		t.Errorf("the message names no blob of the photo: %s", text)
	}
	for _, letter := range []string{"a", "b", "c"} {
		value := large(letter)
		for _, form := range [][]byte{value[:8], []byte(base64.StdEncoding.EncodeToString(value)[:10])} {
			if bytes.Contains(text, form) {
				t.Errorf("a value is in the message: %s", text)
			}
		}
	}
}
