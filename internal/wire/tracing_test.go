package wire

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// TestHideKeysInText: whatever the keys are, and escaped or not, an address gives none of them away.
func TestHideKeysInText(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"https://t.test/Contoso()": "https://t.test/Contoso()",
		"/$batch":                  "/$batch",
		"before (PartitionKey='a',RowKey='b') after":                  "before (...) after",
		"(PartitionKey='a',RowKey='b') (PartitionKey='c',RowKey='d')": "(...) (...)",
		"(PartitionKey='a)b',RowKey='c)') after":                      "(...) after",
		"(PartitionKey='O''Brien)',RowKey='''') after":                "(...) after",
		"(PartitionKey='%2527)x',RowKey='') after":                    "(...) after",
		"(PartitionKey=%27a%27%27b%27,RowKey=%27c%27) after":          "(...) after",
		"(PartitionKey='cut off":                                      "(...)",
		"/Contoso()?%24filter=PartitionKey+eq+%27a%27&x=y":            "/Contoso()?%24filter=REDACTED&x=y",
		`Get "/Contoso()?$filter=PartitionKey eq 'a b'": refused`:     `Get "/Contoso()?$filter=REDACTED": refused`,
		"?NextPartitionKey=1!4!YQ--&NextRowKey=1!4!Yg--":              "?NextPartitionKey=REDACTED&NextRowKey=REDACTED",
	} {
		assert.Equal(t, HideKeysInText(text), want, "%q", text)
	}
	for _, key := range []string{"jones", "O'jones", "jones')", "')jones", "(PartitionKey='jones", "%27jones", "jo nes\"&", "jones)"} {
		a := Address{Table: "Contoso", PartitionKey: key, RowKey: key}
		escaped := string(a.AppendEscaped(nil)) + " after"
		plain := "Contoso(PartitionKey='" + strings.ReplaceAll(key, "'", "''") + "',RowKey='" + strings.ReplaceAll(key, "'", "''") + "') after"
		filter := "Contoso()?" + url.Values{"$filter": {"PartitionKey eq '" + strings.ReplaceAll(key, "'", "''") + "'"}}.Encode() + "\n after"
		for _, text := range []string{escaped, plain, filter} {
			if got := HideKeysInText(text); strings.Contains(got, "nes") || !strings.Contains(got, "Contoso") || !strings.HasSuffix(got, " after") {
				t.Errorf("%q becomes %q", text, got)
			}
		}
	}
}

// TestHideKeys: every way in which a span is given text.
func TestHideKeys(t *testing.T) {
	var seen []string
	note := func(list ...tracing.Attribute) {
		for _, a := range list {
			seen = append(seen, fmt.Sprintf("%s=%v", a.Key, a.Value))
		}
	}
	span := tracing.NewSpan(tracing.SpanImpl{
		End:           func() { seen = append(seen, "end") },
		SetAttributes: note,
		AddEvent:      func(_ string, list ...tracing.Attribute) { note(list...) },
		SetStatus:     func(_ tracing.SpanStatus, text string) { seen = append(seen, text) },
	})
	inner := tracing.NewProvider(func(name, version string) tracing.Tracer {
		seen = append(seen, name+" "+version)
		return tracing.NewTracer(func(ctx context.Context, _ string, o *tracing.SpanOptions) (context.Context, tracing.Span) {
			note(o.Attributes...)
			return ctx, span
		}, &tracing.TracerOptions{SpanFromContext: func(context.Context) tracing.Span { return span }})
	}, nil)
	tracer := HideKeys(inner).NewTracer("module", "v1")
	secret := tracing.Attribute{Key: "http.url", Value: "https://t.test/Contoso(PartitionKey='jones',RowKey='jones')?sig=topsecret"}
	number := tracing.Attribute{Key: "http.status_code", Value: 200}
	_, started := tracer.Start(context.Background(), "Get", nil)
	started.End()
	tracer.SetAttributes(secret)
	given := []tracing.Attribute{secret, number}
	_, started = tracer.Start(context.Background(), "Get", &tracing.SpanOptions{Attributes: given})
	for _, s := range []tracing.Span{started, tracer.SpanFromContext(context.Background())} {
		s.SetAttributes(secret, number)
		s.AddEvent("event", secret)
		s.SetStatus(tracing.SpanStatusError, secret.Value.(string))
	}
	for _, text := range seen {
		if strings.Contains(text, "jones") || strings.Contains(text, "topsecret") {
			t.Errorf("a span says %s", text)
		}
	}
	assert.Equal(t, given[0], secret, "the caller's attributes were written to")
	if len(seen) != 13 || !slices.Contains(seen, "http.status_code=200") || seen[1] != "end" {
		t.Errorf("%d texts: %q", len(seen), seen)
	}
	if HideKeys(tracing.Provider{}).NewTracer("module", "v1").Enabled() {
		t.Error("a tracer that does nothing is enabled")
	}
}
