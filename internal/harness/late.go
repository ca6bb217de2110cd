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

// LateRequest is a fault: the client gets a connection reset, but the request arrives later.
type LateRequest struct {
	// Network sends the late request. It must not be the transport of a schedule, which would hold the request forever.
	Network policy.Transporter
	After   time.Duration
	// Until is the time after which the request is lost instead. Set it where real time passes and a process can be
	// stopped: leases do not cover a request that is delayed by more than their margin. 0 means never.
	Until time.Duration
}

// String names the fault.
func (LateRequest) String() string { return "Late" }

// Meet implements storagetest.Fault.
func (l LateRequest) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (*http.Response, error) {
	again, err := copyOf(req)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	go func() {
		time.Sleep(l.After)
		if l.Until > 0 && time.Since(began) > l.Until {
			return
		}
		if resp, err := l.Network.Do(again); err == nil {
			resp.Body.Close()
		}
	}()
	return nil, connectionReset()
}

// HeldRequest is a fault: the client gets a connection reset, and the request arrives when the test calls
// Arrive.
type HeldRequest struct {
	Network policy.Transporter // sends the request when the test calls Arrive
	held    *http.Request
}

// String names the fault.
func (*HeldRequest) String() string { return "Held" }

// Meet implements storagetest.Fault.
func (h *HeldRequest) Meet(_ storagetest.Call, req *http.Request, _ storagetest.Send) (_ *http.Response, err error) {
	if h.held, err = copyOf(req); err != nil {
		return nil, err
	}
	return nil, connectionReset()
}

// Arrive sends the request and returns the status of its response, 0 if there is none.
func (h *HeldRequest) Arrive() int {
	resp, err := h.Network.Do(h.held)
	if err != nil {
		return 0
	}
	resp.Body.Close()
	return resp.StatusCode
}

// copyOf returns the request with a body of its own, because the SDK may send the original again meanwhile.
func copyOf(req *http.Request) (*http.Request, error) {
	again := req.Clone(context.WithoutCancel(req.Context()))
	if req.Body == nil {
		return again, nil
	}
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	req.Body.Close()
	again.Body = io.NopCloser(bytes.NewReader(body))
	return again, nil
}

func connectionReset() error {
	return &net.OpError{Op: "read", Net: "tcp", Err: os.NewSyscallError("read", syscall.ECONNRESET)}
}
