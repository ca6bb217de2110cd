package storagetest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/toy"
)

// struck says which of the calls an injector strikes: all of one kind, in the order of their indexes.
func struck(i Injector, kinds ...Kind) (indexes []int) {
	for n, kind := range kinds {
		if i.Inject(Call{Index: n, Kind: kind, Method: http.MethodGet}) != nil {
			indexes = append(indexes, n)
		}
	}
	return indexes
}

func TestCombinators(t *testing.T) {
	puts := slices.Repeat([]Kind{PutMessage}, 6)
	mixed := []Kind{GetEntity, PutMessage, GetEntity, PutMessage, DeleteMessage, PutMessage}
	toggle := NewToggle(LostAnswer)
	for name, c := range map[string]struct {
		injector Injector
		kinds    []Kind
		want     []int
		text     string
	}{
		"a mode":             {LostAnswer, puts, []int{0, 1, 2, 3, 4, 5}, "LostAnswer"},
		"no mode":            {Mode(0), puts, nil, "None"},
		"a cut":              {CutAnswer(7), puts[:2], []int{0, 1}, "CutAnswer(7)"},
		"always":             {Always(Before("concurrent writer", nil)), puts[:2], []int{0, 1}, "Before concurrent writer"},
		"one index":          {OnIndex(2, LostAnswer), puts, []int{2}, "(OnIndex 2 LostAnswer)"},
		"an index too far":   {OnIndex(6, LostAnswer), puts, nil, "(OnIndex 6 LostAnswer)"},
		"a kind":             {On(PutMessage, NotSent), mixed, []int{1, 3, 5}, "(On PutMessage NotSent)"},
		"an index of a kind": {On(PutMessage, OnIndex(1, NotSent)), mixed, []int{3}, "(On PutMessage (OnIndex 1 NotSent))"},
		"a kind at an index": {OnIndex(1, On(PutMessage, NotSent)), mixed, []int{1}, "(OnIndex 1 (On PutMessage NotSent))"},
		"a predicate":        {If(func(c Call) bool { return c.Index > 3 }, NotSent), mixed, []int{4, 5}, "(If func NotSent)"},
		"once":               {Once(On(PutMessage, NotSent)), mixed, []int{1}, "(Times 1 (On PutMessage NotSent))"},
		"twice":              {Times(2, On(PutMessage, NotSent)), mixed, []int{1, 3}, "(Times 2 (On PutMessage NotSent))"},
		"first":              {First(On(DeleteMessage, NotSent), On(GetEntity, Throttled)), mixed, []int{0, 2, 4}, "(First (On DeleteMessage NotSent) (On GetEntity Throttled))"},
		"first of none":      {First(), mixed, nil, "(First )"},
		"what is behind first does not count": {First(On(GetEntity, NotSent), OnIndex(1, Throttled)), mixed, []int{0, 2, 3},
			"(First (On GetEntity NotSent) (OnIndex 1 Throttled))"},
		"a function": {InjectorFunc(func(c Call) Fault {
			if c.Index == 1 {
				return NotSent
			}
			return nil
		}), mixed, []int{1}, "(func)"},
		"off": {toggle, mixed, nil, "(Toggle off LostAnswer)"},
	} {
		t.Run(name, func(t *testing.T) {
			assert.Slices(t, struck(c.injector, c.kinds...), c.want, "strikes")
			assert.Equal(t, c.injector.String(), c.text, "its name")
		})
	}
	toggle.Set(true)
	if got := struck(toggle, puts[:2]...); len(got) != 2 || toggle.String() != "(Toggle on LostAnswer)" {
		t.Errorf("%v on: strikes %v", toggle, got)
	}
	toggle.Set(false)
	if got := struck(toggle, puts...); got != nil {
		t.Errorf("off again: strikes %v", got)
	}
}

func TestRandomlyIsSeeded(t *testing.T) {
	calls := slices.Repeat([]Kind{PutMessage}, 10_000)
	first := struck(Randomly(0.1, 1, NotSent), calls...)
	if again := struck(Randomly(0.1, 1, NotSent), calls...); !slices.Equal(first, again) {
		t.Error("one seed strikes different calls")
	}
	if other := struck(Randomly(0.1, 2, NotSent), calls...); slices.Equal(first, other) {
		t.Error("two seeds strike the same calls")
	}
	if len(first) < 900 || len(first) > 1100 {
		t.Errorf("%d of 10,000 calls struck, at a rate of 0.1", len(first))
	}
	if n := len(struck(Randomly(0, 1, NotSent), calls...)) + 10_000 - len(struck(Randomly(1, 1, NotSent), calls...)); n != 0 {
		t.Errorf("rates of 0 and 1 are off by %d", n)
	}
}

// Every mode: what the service saw, and what the client sees, without the SDK's repetitions.
func TestModes(t *testing.T) {
	var dial, read *net.OpError
	for mode, c := range map[Mode]struct {
		applied bool
		status  int
		code    string
		err     func(error) bool
	}{
		NotSent: {false, 0, "", func(err error) bool {
			return errors.As(err, &dial) && dial.Op == "dial" && errors.Is(err, syscall.ECONNREFUSED)
		}},
		LostAnswer: {true, 0, "", func(err error) bool {
			return errors.As(err, &read) && read.Op == "read" && errors.Is(err, syscall.ECONNRESET)
		}},
		Applied500: {true, 500, "InternalError", nil},
		Before500:  {false, 500, "InternalError", nil},
		Throttled:  {false, 503, "ServerBusy", nil},
		DiesBefore: {false, 0, "", func(err error) bool { return errors.Is(err, ErrDied) }},
		DiesAfter:  {true, 0, "", func(err error) bool { return errors.Is(err, ErrDied) }},
	} {
		for _, address := range []string{toy.Row("a"), toy.Queue, "http://toy.blob.test/c/b"} {
			t.Run(mode.String()+" "+address, func(t *testing.T) {
				s, service := newToy()
				faulty, faults := s.WithRetries(0).Faulty(mode)
				resp, err := send(t, faulty, http.MethodPut, address)
				if applied := len(service.Rows()) > 0; applied != c.applied {
					t.Errorf("applied: %v", applied)
				}
				if c.err != nil {
					if err == nil || !c.err(err) || resp != nil {
						t.Errorf("answer %v, error %#v", resp, err)
					}
				} else if err != nil || resp.StatusCode != c.status {
					t.Fatalf("answer %v, error %v", resp, err)
				} else {
					wantRefusal(t, resp, c.code)
				}
				if met := faults.Met(); len(met) != 1 || met[0].Fault != mode || faults.Dead() != (mode >= DiesBefore) {
					t.Errorf("met %v, dead: %v", met, faults.Dead())
				}
			})
		}
	}
	if Mode(99).String() != "Mode(99)" {
		t.Error(Mode(99))
	}
}

// send makes one request as the SDK does, with a signature in its address.
func send(t *testing.T, s *Service, method, address string) (*http.Response, error) {
	t.Helper()
	pipeline := runtime.NewPipeline("toy", "v1", runtime.PipelineOptions{}, &s.ClientOptions)
	req, err := runtime.NewRequest(t.Context(), method, address+"?sig=c2VjcmV0")
	assert.Check(t, err)
	resp, err := pipeline.Do(req)
	if err != nil && strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("the error holds the signature: %v", err)
	}
	return resp, err
}

// wantRefusal fails unless the answer is what the SDK takes for a refusal by that code, with the service's message.
func wantRefusal(t *testing.T, resp *http.Response, code string) {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	assert.Check(t, err)
	if int64(len(body)) != resp.ContentLength || resp.Header.Get("Content-Length") != fmt.Sprint(len(body)) {
		t.Errorf("a length of %d for %d bytes", resp.ContentLength, len(body))
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	var answer *azcore.ResponseError
	if err := runtime.NewResponseError(resp); !errors.As(err, &answer) || answer.ErrorCode != code {
		t.Errorf("the SDK reads %v", err)
	}
	if text := string(body); !strings.Contains(text, "RequestId:") || !strings.Contains(text, "Time:2") {
		t.Errorf("body %s", text)
	}
}

// What comes back after a HEAD has no body, whatever its status.
func TestModesAnswerHead(t *testing.T) {
	s, _ := newToy()
	faulty, _ := s.WithRetries(0).Faulty(Throttled)
	resp, err := send(t, faulty, http.MethodHead, "http://toy.blob.test/c/b")
	assert.Check(t, err)
	if body, err := io.ReadAll(resp.Body); err != nil || len(body) != 0 || resp.Header.Get("x-ms-error-code") != "ServerBusy" {
		t.Errorf("%q, %v, %v", body, err, resp.Header)
	}
}

// The SDK repeats what a fault fails, except for the dead.
func TestModesAndTheSDKsRetries(t *testing.T) {
	for _, mode := range []Mode{NotSent, LostAnswer, Applied500, Before500, Throttled} {
		s, service := newToy()
		faulty, faults := s.WithRetries(3).Faulty(Times(2, mode))
		assert.NoError(t, put(t.Context(), faulty, "a", "new"), "%v twice, four attempts", mode)
		if len(faults.Calls()) != 3 || len(service.Rows()) != 1 {
			t.Errorf("%v: calls %v, rows %v", mode, faults.Calls(), service.Rows())
		}
	}
	for _, mode := range []Mode{DiesBefore, DiesAfter} {
		s, service := newToy()
		faulty, faults := s.WithRetries(3).Faulty(Once(mode))
		for range 2 {
			assert.ErrorIs(t, put(t.Context(), faulty, "a", "new"), ErrDied, mode)
		}
		if n := len(service.Log()); len(faults.Calls()) != 1 || n != int(mode-DiesBefore) {
			t.Errorf("%v: calls %v, %d arrived", mode, faults.Calls(), n)
		}
		assert.Check(t, put(t.Context(), s, "a", "another process")) // the service lives on
	}
}

// A call that is on its way when another one's fault ends the client is answered to nobody.
func TestDeathTakesCallsUnderWay(t *testing.T) {
	s, _ := newToy()
	onTheWay, dead := make(chan struct{}), make(chan struct{})
	wait := Before("the death", func() { close(onTheWay); <-dead })
	faulty, _ := s.WithRetries(0).Faulty(First(OnIndex(0, Always(wait)), DiesBefore))
	answered := make(chan error)
	go func() { answered <- put(t.Context(), faulty, "a", "new") }()
	<-onTheWay
	assert.ErrorIs(t, put(t.Context(), faulty, "b", "new"), ErrDied)
	close(dead)
	assert.ErrorIs(t, <-answered, ErrDied)
	if got, err := get(t.Context(), s, "a"); err != nil || got != "new" {
		t.Errorf("what was on its way arrived as %q, %v", got, err)
	}
}

func TestDeathEndsContexts(t *testing.T) {
	s, _ := newToy()
	faulty, faults := s.Faulty(OnIndex(1, DiesAfter))
	before, cancel := faults.Context(t.Context())
	defer cancel()
	assert.Check(t, put(before, faulty, "a", "new"))
	if before.Err() != nil {
		t.Error("the context has ended, and the client lives")
	}
	put(before, faulty, "b", "new")
	after, cancel := faults.Context(t.Context())
	defer cancel()
	if context.Cause(before) != ErrDied || context.Cause(after) != ErrDied {
		t.Errorf("causes %v and %v", context.Cause(before), context.Cause(after))
	}
}

func TestBeforeAndAfterACall(t *testing.T) {
	for want, fault := range map[string]func(string, func()) Fault{"ours": Before, "concurrent writer's": After} {
		s, _ := newToy()
		faulty, _ := s.Faulty(Always(fault("concurrent writer", func() { assert.Check(t, put(t.Context(), s, "a", "concurrent writer's")) })))
		assert.Check(t, put(t.Context(), faulty, "a", "ours"))
		if got, err := get(t.Context(), s, "a"); err != nil || got != want {
			t.Errorf("%s stays, want %s: %v", got, want, err)
		}
	}
}

// A call without a fault is handed on as it came: same request, same answer, nothing read.
func TestFaultsLeaveOthersAlone(t *testing.T) {
	body := io.NopCloser(strings.NewReader("unread"))
	answer := &http.Response{StatusCode: 200, Body: body}
	var got *http.Request
	faults := NewFaults(transporter(func(req *http.Request) (*http.Response, error) { got = req; return answer, nil }), nil)
	req := httptest.NewRequest(http.MethodPut, "http://a.blob.test/c/b", io.NopCloser(strings.NewReader("unread")))
	if resp, err := faults.Do(req); err != nil || resp != answer || resp.Body != body || got != req {
		t.Errorf("the request became %v, the answer %v, %v", got, resp, err)
	}
	if len(faults.Calls()) != 1 || faults.Met() != nil || faults.String() != "None" {
		t.Errorf("%v %v %v", faults, faults.Calls(), faults.Met())
	}
	assert.Equal[policy.Transporter](t, NewFaults(nil, nil).inner, http.DefaultClient, "the transport instead of nil")
}

type transporter func(*http.Request) (*http.Response, error)

func (f transporter) Do(req *http.Request) (*http.Response, error) { return f(req) }

var _ policy.Transporter = transporter(nil)
