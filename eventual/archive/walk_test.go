package archive_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/explore"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// walkedMove is a move in a world small enough to be walked through: users, and workers with messages about one clerk.
type walkedMove struct {
	toBlobs         bool
	users           []user
	messages        int
	workers         int
	crashes, pauses int
	without         string // a rule that the workers do not keep; see rules
}

// moveWalkVisibility is long against the waits between two attempts, which pass for one process alone in a walk.
const moveWalkVisibility = time.Minute

func (w walkedMove) stage(t testing.TB, s *storagetest.Service) explore.InterleavingStage {
	o := newOffice(t, s, office{toBlobs: w.toBlobs, visibility: moveWalkVisibility})
	p, c := o.open(t, s), june()
	assert.Check(t, p.current.Insert(t.Context(), c))
	for range w.messages {
		assert.Check(t, p.mover.Move(t.Context(), c))
	}
	stage := explore.InterleavingStage{Queues: []string{o.queue}, Check: func(ctx context.Context, s *storagetest.Service) error {
		p, err := o.start(s)
		if err != nil {
			return err
		}
		return p.promised(ctx, w.users)
	}}
	for _, u := range w.users {
		stage.Processes = append(stage.Processes, func(ctx context.Context, s *storagetest.Service) error {
			p, err := o.start(s)
			if err != nil {
				return err
			}
			return u.come(ctx, p)
		})
	}
	for range w.workers {
		stage.Workers = append(stage.Workers, func(ctx context.Context, s *storagetest.Service) error {
			p, err := o.start(without(w.without, o, harness.OneGet(s)))
			if err != nil {
				return err
			}
			worker, err := eventual.NewWorker(p.queue, nil, &eventual.WorkerOptions{Concurrency: 1, MaxDequeues: 20,
				RetryDelay: func(int) time.Duration { return time.Second }})
			if err == nil {
				_, err = worker.Drain(ctx)
			}
			return err
		})
	}
	return stage
}

func (w walkedMove) walk(t *testing.T) explore.Walk {
	t.Helper()
	name := fmt.Sprintf("to blobs %v, users %v, %d messages, %d workers, %d crashes, %d pauses, without %q", w.toBlobs, w.users, w.messages, w.workers, w.crashes, w.pauses, w.without)
	return explore.Interleavings(t, explore.InterleavingCase{Name: name, Stage: w.stage, Crashes: w.crashes, Pauses: w.pauses, Pause: moveWalkVisibility + time.Second})
}

// TestWalkMover walks through every interleaving of small worlds: users at both ends, and workers that die.
func TestWalkMover(t *testing.T) {
	for _, toBlobs := range []bool{false, true} {
		for _, atSource := range acts() {
			for _, atCopy := range acts() {
				if atSource == insertsAgain || !harness.Thorough() && (atCopy == insertsAgain || atSource != "" && atCopy != "") {
					continue
				}
				w := walkedMove{toBlobs: toBlobs, users: usersOf(atSource, atCopy), messages: 1, workers: 1, crashes: 1}
				w.walk(t).MustConverge(t)
				if harness.Thorough() {
					w.crashes, w.pauses = 2, 1
					w.walk(t).MustConverge(t)
				}
			}
		}
	}
}

// TestWalkMoverTwice: two messages, handled at the same time.
func TestWalkMoverTwice(t *testing.T) {
	for _, toBlobs := range []bool{false, true} {
		for _, users := range [][]user{nil, usersOf(updates, ""), usersOf(deletes, ""), usersOf("", updates), usersOf("", deletes)} {
			if len(users) > 0 && !harness.Thorough() {
				continue
			}
			walkedMove{toBlobs: toBlobs, users: users, messages: 2, workers: 2}.walk(t).MustConverge(t)
		}
	}
}

// TestWalkMoverCanFail: without any one of these rules, a walk finds what the rule is for. What the others are for, the models
// show.
func TestWalkMoverCanFail(t *testing.T) {
	for _, w := range []walkedMove{
		{users: usersOf("", updates), crashes: 1, without: "Mark"},
		{users: usersOf("", ""), crashes: 1, without: "Trace"},
		{users: usersOf(updates, ""), without: "SourceETag"},
		{users: usersOf(updates, updates), without: "CopyETag"},
		{users: usersOf("", ""), without: "CleanUp"},
		{toBlobs: true, users: usersOf(updates, ""), without: "SourceETag"},
		{toBlobs: true, users: usersOf(updates, updates), without: "Base"},
		{toBlobs: true, users: usersOf(updates, updates), without: "Unchanged"},
		{toBlobs: true, users: usersOf(deletes, updates), without: "BlobETag"},
	} {
		w.messages, w.workers = 1, 1
		w.walk(t).MustDiverge(t)
	}
}

// without is a service whose clients break a rule of the protocol: on the wire, so that the mover itself is the one that is
// tested.
func without(rule string, o *office, s *storagetest.Service) *storagetest.Service {
	if rule == "" {
		return s
	}
	broken := *s
	broken.ClientOptions.PerCallPolicies = append(slices.Clone(s.ClientOptions.PerCallPolicies), &blobRuleBreaker{rule, o})
	broken.ClientOptions.PerRetryPolicies = append(slices.Clone(s.ClientOptions.PerRetryPolicies), &ruleBreaker{rule, o})
	return &broken
}

// blobRuleBreaker comes before requests are signed, which covers the headers of a blob's.
type blobRuleBreaker struct {
	rule string
	*office
}

// Do is policy.Policy.
func (b *blobRuleBreaker) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	if strings.Contains(raw.URL.Path, b.container) && (b.rule == "Base" && raw.Method == http.MethodPut || b.rule == "BlobETag" && raw.Method == http.MethodDelete) {
		raw.Header.Del("If-Match")
	}
	return req.Next()
}

// ruleBreaker sees requests as they are sent.
type ruleBreaker struct {
	rule string
	*office
}

var ifMatch = regexp.MustCompile(`If-Match: W/[^\r\n]*`)

// Do is policy.Policy.
func (b *ruleBreaker) Do(req *policy.Request) (*http.Response, error) {
	raw := req.Raw()
	path := raw.URL.Path
	batch := strings.HasSuffix(path, "$batch")
	switch {
	case b.rule == "Mark" && raw.Method == http.MethodGet && strings.Contains(path, "movemark_"),
		b.rule == "Trace" && raw.Method == http.MethodGet && strings.Contains(path, "movetrace_"):
		return answered(raw, http.StatusNotFound, "ResourceNotFound"), nil
	case b.rule == "CleanUp" && raw.Method == http.MethodDelete && strings.Contains(path, "movemark_"):
		return answered(raw, http.StatusNoContent, ""), nil
	case b.rule == "SourceETag" && batch, b.rule == "CopyETag" && batch:
		return b.withoutETag(req)
	}
	resp, err := req.Next()
	if err == nil && b.rule == "Unchanged" && raw.Method == http.MethodHead {
		sum, _ := hex.DecodeString(resp.Header.Get("x-ms-meta-tpmd5"))
		resp.Header.Set("Content-MD5", base64.StdEncoding.EncodeToString(sum))
	}
	return resp, err
}

// withoutETag sends a transaction that deletes the entity, or replaces its copy, whatever has changed.
func (b *ruleBreaker) withoutETag(req *policy.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body())
	if err != nil {
		return nil, err
	}
	if err := req.RewindBody(); err != nil {
		return nil, err
	}
	table := map[string]string{"SourceETag": b.office.current, "CopyETag": b.archive}[b.rule]
	if bytes.Contains(body, []byte("/"+table+"(")) {
		body = ifMatch.ReplaceAll(body, []byte("If-Match: *"))
	}
	if err := req.SetBody(streaming.NopCloser(bytes.NewReader(body)), req.Raw().Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	return req.Next()
}

// answered is an answer of no service.
func answered(raw *http.Request, status int, code string) *http.Response {
	resp := &http.Response{StatusCode: status, Status: fmt.Sprintf("%d %s", status, http.StatusText(status)), Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Request: raw, Header: http.Header{}, Body: http.NoBody}
	if code != "" {
		resp.Header.Set("Content-Type", "application/json")
		resp.Body = io.NopCloser(strings.NewReader(`{"odata.error":{"code":"` + code + `","message":{"lang":"en-US","value":"none"}}}`))
	}
	return resp
}
