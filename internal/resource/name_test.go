package resource

import (
	"strings"
	"testing"
)

// TestNames of queues and containers, as the service has them.
func TestNames(t *testing.T) {
	for name, ok := range map[string]bool{"abc": true, "a-b-c": true, "0-9": true, strings.Repeat("a", 63): true,
		"ab": false, strings.Repeat("a", 64): false, "a--b": false, "-ab": false, "ab-": false, "aBc": false, "a_b": false, "äbc": false, "a.b": false} {
		if err := CheckName(name); (err == nil) != ok {
			t.Errorf("%q: %v", name, err)
		}
	}
}
