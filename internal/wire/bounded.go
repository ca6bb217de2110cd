package wire

import (
	"fmt"
	"io"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/internal/kinds"
)

const (
	// maxResponse is far above the largest response of Azure: a page of entities has 4 MiB, 32 messages have 2 MiB, and a listing of 5,000
	// blobs with all their metadata 45 MiB.
	maxResponse = 64 << 20
	maxRefusal  = 1 << 20 // of the description of an error
)

// Bounded limits what its caller reads of each response, since the SDK reads responses whole. It does not limit the content of a blob,
// which the SDK returns as a stream.
type Bounded struct {
	Inner policy.Transporter
	Blobs bool // the service is that of blobs
}

// Do sends the request.
func (b Bounded) Do(req *http.Request) (*http.Response, error) {
	resp, err := b.Inner.Do(req)
	most := int64(maxResponse)
	switch {
	case err != nil:
		return resp, err
	case resp.StatusCode >= http.StatusBadRequest:
		most = maxRefusal
	case b.Blobs && isDownload(req):
		return resp, nil
	}
	if resp.Body, err = limit(resp.Body, resp.ContentLength, most); err != nil {
		return nil, err
	}
	return resp, nil
}

// isDownload reports whether a request to the blob service asks for the content of a blob.
func isDownload(req *http.Request) bool {
	query := req.URL.Query()
	return req.Method == http.MethodGet && !query.Has("comp") && !query.Has("restype")
}

// limit returns the body of a response, of which at most n bytes can be read. Of a response that says that it is longer nothing is read:
// limit closes the body and returns the error. length is -1 if the response does not say its length.
func limit(body io.ReadCloser, length, n int64) (io.ReadCloser, error) {
	if length > n {
		_ = body.Close()
		return nil, tooLong{n}
	}
	return &limited{body, n, n}, nil
}

// ReadAll reads and closes the body of a response of at most n bytes. length is what the response says, nil for nothing.
func ReadAll(body io.ReadCloser, length *int64, n int64) ([]byte, error) {
	said := int64(-1)
	if length != nil {
		said = *length
	}
	body, err := limit(body, said, n)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	return io.ReadAll(body)
}

type limited struct {
	io.ReadCloser
	left, limit int64
}

// Read returns an error in place of the first byte above the limit.
func (l *limited) Read(p []byte) (int, error) {
	if int64(len(p)) > l.left+1 {
		p = p[:l.left+1]
	}
	n, err := l.ReadCloser.Read(p)
	if int64(n) > l.left {
		return int(l.left), tooLong{l.limit}
	}
	l.left -= int64(n)
	return n, err
}

// tooLong is the error of a response that is longer than any that its request can have. The SDK does not repeat the request.
type tooLong struct{ limit int64 }

// NonRetriable makes the SDK's retry policy give up.
func (tooLong) NonRetriable() {}

// Error returns the limit.
func (e tooLong) Error() string {
	return fmt.Sprintf("the response is longer than %d bytes, which no program of this library writes and the service does not send", e.limit)
}

// Unwrap returns ErrGarbled.
func (e tooLong) Unwrap() error { return kinds.ErrCutOff }
