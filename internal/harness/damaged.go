package harness

import (
	"bytes"
	"io"
	"net/http"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Damaged replaces texts in the responses that a client reads, to simulate stored data that no client of this
// module can write. The arguments are pairs of an old and a new text.
func Damaged(oldAndNew ...string) func(*azcore.ClientOptions) {
	replacer := strings.NewReplacer(oldAndNew...)
	return func(o *azcore.ClientOptions) {
		inner := o.Transport
		o.Transport = Transport(func(req *http.Request) (*http.Response, error) {
			resp, err := inner.Do(req)
			if err != nil || resp.Body == nil {
				return resp, err
			}
			body, err := io.ReadAll(resp.Body)
			_ = resp.Body.Close() // the body was read completely
			if err != nil {
				return nil, err
			}
			text := replacer.Replace(string(body))
			resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader([]byte(text))), int64(len(text))
			resp.Header.Del("Content-Length")
			return resp, nil
		})
	}
}
