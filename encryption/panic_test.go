package encryption_test

import (
	"encoding/hex"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// TestPanicsShowNoSecret: a program that dies of a value which holds a key prints no key. Each death needs a process.
func TestPanicsShowNoSecret(t *testing.T) {
	const variable, key = "TABLEPATTERNS_PANIC_WITH", "0123456789abcdefABCDEF9876543210"
	local := assert.Must[encryption.LocalKey](t)(encryption.NewLocalKey("local", []byte(key)))
	values := map[string]func() any{
		"a local key": func() any { return local }, "a chain": func() any { return encryption.NewChain(local) }, "in a struct": func() any { return struct{ key encryption.LocalKey }{local} },
		"a registry": func() any {
			w := worldOn(t, storagetest.Simulator(t, nil))
			return w.open(t, local, nil)
		},
		"an error": func() any {
			_, err := local.Unwrap(t.Context(), encryption.WrappedKey{KeyID: "local", Algorithm: encryption.AlgorithmA256KW, Bytes: []byte(key)})
			return err
		},
	}
	if name := os.Getenv(variable); name != "" {
		panic(values[name]())
	}
	for name := range values {
		command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPanicsShowNoSecret$")
		command.Env = append(os.Environ(), variable+"="+name)
		out, err := command.CombinedOutput()
		text := string(out)
		if err == nil || !strings.Contains(text, "panic: ") {
			t.Errorf("%s: %v, and not of the panic: %s", name, err, text)
		}
		if strings.Contains(text, key) || strings.Contains(strings.ToLower(text), hex.EncodeToString([]byte(key))) {
			t.Errorf("%s: the key is in %s", name, text)
		}
	}
}
