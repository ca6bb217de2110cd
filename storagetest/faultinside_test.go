package storagetest

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/toy"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// tee keeps the answers that a client gets.
type tee struct {
	inner interface {
		Do(*http.Request) (*http.Response, error)
	}
	resp *http.Response
	body []byte
}

func (x *tee) Do(req *http.Request) (*http.Response, error) {
	resp, err := x.inner.Do(req)
	if err == nil {
		x.resp = resp
		x.body, _ = io.ReadAll(resp.Body)
		resp.Body = io.NopCloser(bytes.NewReader(x.body))
	}
	return resp, err
}

// TestInside: a transaction is answered 202 with one part, the failure, and is applied or not, as the fault says. Other calls
// are left alone.
func TestInside(t *testing.T) {
	ctx, seen := t.Context(), map[string]bool{}
	for _, fault := range FaultsOf(Batch) {
		inside, is := fault.(Inside)
		if !is {
			continue
		}
		seen[fmt.Sprint(inside.Status)], seen[fmt.Sprint("applied ", inside.Applied)], seen[fmt.Sprint("coded ", inside.Code != "")] = true, true, true
		s := Simulator(t, nil).WithRetries(0)
		faulty, faults := s.Faulty(inside)
		answers := &tee{inner: faulty.ClientOptions.Transport}
		faulty.ClientOptions.Transport = answers
		service, err := aztables.NewServiceClientFromConnectionString(s.ConnectionString, &aztables.ClientOptions{ClientOptions: faulty.ClientOptions})
		assert.Check(t, err)
		assert.Check(t, assert.Err(service.CreateTable(ctx, "Staff", nil)))
		client := service.NewClient("Staff")
		_, err = client.SubmitTransaction(ctx, []aztables.TransactionAction{
			{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"p","RowKey":"1"}`)},
			{ActionType: aztables.TransactionTypeAdd, Entity: []byte(`{"PartitionKey":"p","RowKey":"2"}`)}}, nil)
		answer, parsed := wire.ParseBatchAnswer(answers.resp.Header.Get("Content-Type"), answers.body, 2)
		if err == nil || answers.resp.StatusCode != http.StatusAccepted || parsed != nil || answer.Failure == nil ||
			answer.Failure.Status != inside.Status || answer.Failure.Code != inside.Code || answer.Failure.Message == "" {
			t.Errorf("%v: %v, status %d, %+v, %v", inside, err, answers.resp.StatusCode, answer.Failure, parsed)
		}
		page, err := client.NewListEntitiesPager(nil).NextPage(ctx)
		assert.Check(t, err)
		if applied := len(page.Entities) == 2; applied != inside.Applied || !applied && len(page.Entities) > 0 {
			t.Errorf("%v: %d rows", inside, len(page.Entities))
		}
		if met := faults.Met(); len(met) != 1 || met[0].Call.Kind != Batch {
			t.Errorf("%v: met %v", inside, met)
		}
	}
	for _, want := range []string{"503", "500", "429", "applied true", "applied false", "coded true", "coded false"} {
		if !seen[want] {
			t.Errorf("no fault of a transaction is %s", want)
		}
	}
}

// TestInsideLeavesOthersAlone, whichever way it is injected.
func TestInsideLeavesOthersAlone(t *testing.T) {
	fault := Inside{Status: 503}
	s, service := newToy()
	faulty, faults := s.Faulty(InjectorFunc(func(Call) Fault { return fault }))
	assert.Check(t, put(t.Context(), faulty, "a", "new"))
	assert.Len(t, service.Rows(), 1, "rows")
	for _, injector := range []Injector{fault, Always(fault), Once(Always(fault))} {
		assert.Slices(t, struck(injector, PutMessage, GetEntity, Batch, InsertEntity), []int{2}, "%v strikes", injector)
	}
	if len(faults.Met()) != 1 || fault.String() != "Inside(503)" || (Inside{500, "OperationTimedOut", true}).String() != "Inside(500 OperationTimedOut applied)" {
		t.Errorf("%v %v", faults.Met(), fault)
	}
}

// TestSweepOfTransactions: a transaction meets the faults inside its answer as well.
func TestSweepOfTransactions(t *testing.T) {
	world := func(_ testing.TB, _ *Service) World {
		return World{
			Operate: func(ctx context.Context, s *Service) error {
				_, err := toy.Call(ctx, &s.ClientOptions, http.MethodPost, "http://toy.table.test/$batch", "body")
				return err
			},
			Check: func(context.Context, *Service, Ending) error { return nil },
		}
	}
	points, divergences, r := sweepFor(t, SweepCase{World: world, Service: onToy})
	// 2 callers who live × 2 kinds of retries × 12 faults, since the toy's answer has no body to cut, and 2 × 2 deaths.
	if points != 52 || divergences != 0 {
		t.Errorf("%d points, %d divergences: %s", points, divergences, r.said.String())
	}
	assert.Contains(t, r.said.String(), "52 points")
}
