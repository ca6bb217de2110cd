package wire

import (
	"context"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
)

// HideKeys wraps a tracing provider so that the SDK's spans name the table but not the entity. The SDK puts the URL of each
// request into its span, and keys are often personal data, such as an email address.
func HideKeys(provider tracing.Provider) tracing.Provider {
	return tracing.NewProvider(func(name, version string) tracing.Tracer {
		inner := provider.NewTracer(name, version)
		if !inner.Enabled() {
			return inner
		}
		start := func(ctx context.Context, span string, options *tracing.SpanOptions) (context.Context, tracing.Span) {
			hidden := *options // azcore never passes nil
			hidden.Attributes = hideKeysInAttributes(options.Attributes)
			ctx, started := inner.Start(ctx, span, &hidden)
			return ctx, hideKeysInSpan(started)
		}
		fromContext := func(ctx context.Context) tracing.Span { return hideKeysInSpan(inner.SpanFromContext(ctx)) }
		return tracing.NewTracer(start, &tracing.TracerOptions{SpanFromContext: fromContext})
	}, nil)
}

func hideKeysInSpan(span tracing.Span) tracing.Span {
	return tracing.NewSpan(tracing.SpanImpl{
		End: span.End,
		SetAttributes: func(attributes ...tracing.Attribute) {
			span.SetAttributes(hideKeysInAttributes(attributes)...)
		},
		AddEvent: func(name string, attributes ...tracing.Attribute) {
			span.AddEvent(name, hideKeysInAttributes(attributes)...)
		},
		SetStatus: func(status tracing.SpanStatus, description string) {
			span.SetStatus(status, HideKeysInText(RedactText(description)))
		},
	})
}

func hideKeysInAttributes(attributes []tracing.Attribute) []tracing.Attribute {
	hidden := make([]tracing.Attribute, len(attributes))
	for i, a := range attributes {
		if text, ok := a.Value.(string); ok {
			a.Value = HideKeysInText(RedactText(text))
		}
		hidden[i] = a
	}
	return hidden
}

// HideKeysInText replaces the keys in every entity address in a text, whether or not it is escaped for a URL. It also
// replaces the filter and the continuation keys of a query.
func HideKeysInText(text string) string {
	for _, mark := range []string{"%24filter=", "$filter=", "NextPartitionKey=", "NextRowKey="} {
		text = redactAfter(text, mark, "&\"\n\r\t<>")
	}
	return hideAddresses(text)
}

func hideAddresses(text string) string {
	const mark = "(PartitionKey="
	var b strings.Builder
	for {
		before, after, found := strings.Cut(text, mark)
		b.WriteString(before)
		if !found {
			return b.String()
		}
		b.WriteString("(...)")
		text = afterKeys(after)
	}
}

// afterKeys returns the text after the closing parenthesis of an address. A parenthesis inside a quoted key does not count.
// It returns "" if there is no closing parenthesis, because then the text was truncated within the address.
func afterKeys(text string) string {
	quote := "'"
	if strings.HasPrefix(text, "%27") {
		quote = "%27"
	}
	quoted := false
	for i := range len(text) {
		switch {
		case strings.HasPrefix(text[i:], quote):
			quoted = !quoted // a doubled quote toggles twice
		case text[i] == ')' && !quoted:
			return text[i+1:]
		}
	}
	return ""
}
