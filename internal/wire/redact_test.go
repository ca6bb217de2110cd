package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/testrun"
)

const signed = "https://t.test/Contoso?sv=2019-02-02&sig=topsecret%2B%3D&se=2999"

func TestRedactText(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"nothing to hide":                    "nothing to hide",
		signed:                               "https://t.test/Contoso?sv=2019-02-02&sig=REDACTED&se=2999",
		"?sig=topsecret":                     "?sig=REDACTED",
		"sig=topsecret sig=topsecret;x":      "sig=REDACTED sig=REDACTED;x",
		`Get "https://t.test?sig=topsecret"`: `Get "https://t.test?sig=REDACTED"`,
		"AccountName=contoso;AccountKey=topsecret==;X=y": "AccountName=contoso;AccountKey=REDACTED;X=y",
		"SharedAccessSignature=sv=1&sig=topsecret;X=y":   "SharedAccessSignature=REDACTED&sig=REDACTED;X=y",
		"Authorization: SharedKeyLite contoso:topsecret": "Authorization: SharedKeyLite REDACTED",
		"Authorization: SharedKey contoso:topsecret\nX":  "Authorization: SharedKey REDACTED\nX",
		"sig=": "sig=REDACTED",
	} {
		got := RedactText(text)
		assert.Equal(t, got, want, "%q", text)
		if RedactText(got) != got {
			t.Errorf("%q is redacted again to %q", got, RedactText(got))
		}
	}
}

// TestRedactKeepsCauses: what a caller looks for with errors.Is and errors.As is still there, however it was wrapped.
func TestRedactKeepsCauses(t *testing.T) {
	address := &url.Error{Op: "Get", URL: signed, Err: context.DeadlineExceeded}
	for name, err := range map[string]error{
		"address":              address,
		"wrapped address":      fmt.Errorf("tried: %w", address),
		"joined":               errors.Join(io.ErrUnexpectedEOF, address),
		"text around a cause":  fmt.Errorf("%s: %w", signed, context.DeadlineExceeded),
		"several causes":       fmt.Errorf("%s: %w, %w", signed, io.ErrClosedPipe, context.DeadlineExceeded),
		"secret inside secret": fmt.Errorf("a %s: %w", signed, fmt.Errorf("b %s: %w", signed, context.DeadlineExceeded)),
		"address with a bad cause": &url.Error{Op: "Get", URL: signed,
			Err: fmt.Errorf("redirected to %s: %w", signed, context.DeadlineExceeded)},
	} {
		got := Redact(err)
		assert.ErrorIs(t, got, context.DeadlineExceeded, "%s: lost its cause", name)
		testrun.EachCause(got, func(e error) {
			if text := fmt.Sprintf("%v %+v %#v", e, e, e); strings.Contains(text, "topsecret") {
				t.Errorf("%s: %s", name, text)
			}
		})
		assert.Equal(t, Redact(got), got, "%s: redacted twice", name)
	}
	if Redact(nil) != nil {
		t.Error("nil is an error")
	}
	if innocent := io.EOF; Redact(innocent) != innocent {
		t.Error("an innocent error is changed")
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(req *http.Request) (*http.Response, error) { return f(req) }

// TestRedactAnswer: the body of a refusal is clean before the SDK makes an error of it; that of a success is left
// alone, since it is data.
func TestRedactAnswer(t *testing.T) {
	for _, status := range []int{200, 403, 502} {
		f := transport(func(req *http.Request) (*http.Response, error) {
			return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader("asked for " + signed)), Request: req}, nil
		})
		p := runtime.NewPipeline("test", "v1", runtime.PipelineOptions{}, &policy.ClientOptions{Transport: f,
			Retry: policy.RetryOptions{MaxRetries: -1}, PerRetryPolicies: []policy.Policy{Observer{}, Sender{}}})
		req := assert.Must[*policy.Request](t)(runtime.NewRequest(context.Background(), http.MethodGet, "https://t.test/"))
		resp := assert.Must[*http.Response](t)(p.Do(req))
		body, err := runtime.Payload(resp)
		if err != nil || strings.Contains(string(body), "topsecret") != (status < 400) {
			t.Errorf("%d: body %q, error %v", status, body, err)
		}
		var response *azcore.ResponseError
		if err := runtime.NewResponseError(resp); status >= 400 && (!errors.As(err, &response) || strings.Contains(err.Error(), "topsecret")) {
			t.Errorf("%d: %v", status, err)
		}
	}
}

func TestTransportRedacts(t *testing.T) {
	inner := transport(func(req *http.Request) (*http.Response, error) {
		return nil, errors.New("no way to " + req.URL.String())
	})
	req := assert.Must[*http.Request](t)(http.NewRequest(http.MethodGet, signed, nil))
	if _, err := NewTransport(inner, nil).Do(req); err == nil || strings.Contains(err.Error(), "topsecret") {
		t.Errorf("error is %v", err)
	}
}
