package resource

import (
	"fmt"
	"strings"
)

// CheckName returns an error for a name that the service does not accept for a queue or container.
func CheckName(name string) error {
	if len(name) < 3 || len(name) > 63 {
		return fmt.Errorf("queue or container name %q has %d characters; it must have 3 to 63", name, len(name))
	}
	for _, c := range []byte(name) {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' {
			return fmt.Errorf("queue or container name %q must have only lower-case ASCII letters, digits and hyphens", name)
		}
	}
	if name[0] == '-' || name[len(name)-1] == '-' || strings.Contains(name, "--") {
		return fmt.Errorf("queue or container name %q must not begin or end with a hyphen, nor have two in a row", name)
	}
	return nil
}
