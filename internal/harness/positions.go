package harness

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"
)

// MovedPosition returns the token of a job's position whose remaining ranges somebody has replaced by another partition, or by the whole
// table for "*". It fails the test if the token has no ranges.
func MovedPosition(t testing.TB, token, partition string) string {
	t.Helper()
	head, rest, dotted := strings.Cut(token, ".")
	text, err := base64.RawURLEncoding.DecodeString(head)
	var position any
	if err == nil {
		err = json.Unmarshal(text, &position)
	}
	if err != nil {
		t.Fatalf("%q: %v", token, err)
	}
	to := []any{map[string]any{"f": map[string]any{"p": partition}, "t": map[string]any{"p": partition, "s": 2}}}
	if partition == "*" {
		to = []any{map[string]any{"f": map[string]any{}}}
	}
	if !moveRanges(position, to, func(token string) string { return MovedPosition(t, token, partition) }) {
		t.Fatalf("%s has no ranges", text)
	}
	text, _ = json.Marshal(position)
	moved := base64.RawURLEncoding.EncodeToString(text)
	if dotted {
		moved += "." + rest
	}
	return moved
}

// moveRanges replaces the ranges of a decoded position, at any depth; move does so for a token in it.
func moveRanges(position any, to []any, move func(string) string) (moved bool) {
	fields, _ := position.(map[string]any)
	for name, value := range fields {
		moved = moveRanges(value, to, move) || moved
		if token, _ := value.(string); name == "Copies" && token != "" {
			fields[name], moved = move(token), true
		}
		if _, begun := value.(float64); begun && name == "n" { // the number of ranges that have begun
			fields["r"], moved = to, true
		}
	}
	return moved
}
