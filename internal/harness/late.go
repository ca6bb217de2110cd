package harness

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/storagetest"
)

// LateRequest is a fault: the connection is reset, and the request arrives all the same, later.
type LateRequest struct {
	// Network takes the request then: not that of a schedule, where it would wait for a turn that nobody gives it.
	Network policy.Transporter
	After   time.Duration
}

// String names the fault.
func (LateRequest) String() string { return "Late" }

// Meet implements storagetest.Fault.
func (l LateRequest) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (*http.Response, error) {
	// The SDK may send the same request again meanwhile, so this one needs a body of its own.
	again := req.Clone(context.WithoutCancel(req.Context()))
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err != nil {
			return nil, err
		}
		req.Body.Close()
		again.Body = io.NopCloser(bytes.NewReader(body))
	}
	go func() {
		time.Sleep(l.After)
		if resp, err := l.Network.Do(again); err == nil {
			resp.Body.Close()
		}
	}()
	return nil, &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}
