package wire

import (
	"context"
	"errors"
	"net/url"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/tracing"
)

const redacted = "REDACTED"

// Redact returns err with every shared access signature in its text replaced. The text of a transport error contains the URL
// of its request, and with a SAS credential the URL contains the secret.
func Redact(err error) error {
	if err == nil || !hasSecret(err.Error()) {
		return err
	}
	if u, ok := errors.AsType[*url.Error](err); ok && !hasSecret(u.Err.Error()) {
		return &url.Error{Op: u.Op, URL: RedactText(u.URL), Err: u.Err}
	}
	return &redactedError{text: RedactText(err.Error()), causes: innocentCauses(err, nil)}
}

func hasSecret(text string) bool { return RedactText(text) != text }

// innocentCauses returns the wrapped errors whose text contains no secret, so that errors.Is still finds a cancelled context
// or a closed connection.
func innocentCauses(err error, found []error) []error {
	var wrapped []error
	switch w := err.(type) {
	case interface{ Unwrap() error }:
		wrapped = []error{w.Unwrap()}
	case interface{ Unwrap() []error }:
		wrapped = w.Unwrap()
	}
	for _, cause := range wrapped {
		switch {
		case cause == nil:
		case hasSecret(cause.Error()):
			found = innocentCauses(cause, found)
		default:
			found = append(found, cause)
		}
	}
	return found
}

type redactedError struct {
	text   string
	causes []error
}

func (e *redactedError) Error() string   { return e.text }
func (e *redactedError) Unwrap() []error { return e.causes }

// RedactText replaces the values of signatures and keys in a text: in a URL, in a connection string, or in the service's
// message that "the MAC signature found in the HTTP request '...' is not the same".
func RedactText(text string) string {
	for _, mark := range []string{"sig=", "AccountKey=", "SharedAccessSignature=", "SharedKeyLite ", "SharedKey ", "HTTP request '", "HTTP request &#39;"} {
		text = redactAfter(text, mark, "&; \"'\n\r\t<>")
	}
	return text
}

// redactAfter replaces the text after each mark, up to one of the characters in ends.
func redactAfter(text, mark, ends string) string {
	var b strings.Builder
	for {
		i := strings.Index(text, mark)
		if i < 0 {
			b.WriteString(text)
			return b.String()
		}
		i += len(mark)
		b.WriteString(text[:i])
		b.WriteString(redacted)
		end := strings.IndexAny(text[i:], ends)
		if end < 0 {
			return b.String()
		}
		text = text[i+end:]
	}
}

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
