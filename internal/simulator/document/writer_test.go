package document

import (
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

func TestLegal(t *testing.T) {
	for text, want := range map[string]bool{
		"":                   true,
		"plain <&> \t\r\n":   true,
		"\u0085\u00a0\ud7ff": true,
		"\ufffd":             true,
		"\U0001F600":         true,
		"\x00":               false,
		"a\x1f":              false,
		"\x20":               true,
		"\ufffe":             false,
		"\xff":               false,
	} {
		if legal(text) != want {
			t.Errorf("xmlLegal(%q) is %v", text, !want)
		}
	}
}

// TestEscapes holds that text in XML escapes what it must and nothing more.
func TestEscapes(t *testing.T) {
	w := New("Root", "At", `<"a'&>`)
	w.Element("Text", "\"it's\" 1 < 2 & 3 > 2\r\n\tend\x01")
	w.Begin("Nothing")
	w.End()
	w.Element("Empty", "")
	const want = "\ufeff" + `<?xml version="1.0" encoding="utf-8"?><Root At="&lt;&quot;a'&amp;&gt;"><Text>"it's" 1 &lt; 2 &amp; 3 &gt; 2&#xD;` + "\n\tend\ufffd" +
		`</Text><Nothing /><Empty /></Root>`
	assert.Equal(t, string(w.Answer(protocol.NewAnswer(200)).Body), want)
}
