package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"github.com/tablepatterns/tablepatterns/tables"
)

// partial reads and writes parts of entities.
func partial() scenario {
	return scenario{
		title: "Parts of an employee read and written",
		guide: "Server-side projection; Merge or replace",
		shows: []show{
			{"Projection, merge or replace", "the emails of Sales", "", "less is sent; a merge loses nothing"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			s.Plain = "whole employees"
			return steps(ctx, s, c.askForEmails, c.weighEmails, c.mergeOrReplace)
		},
	}
}

// askForEmails asks for one property of everybody in Sales.
func (c *company) askForEmails(ctx context.Context, s *section) error {
	whole := c.plain.Query().Partition(sales)
	with, err := answering(whole.Select("ID", "Email"))
	if err != nil {
		return err
	}
	without, err := answering(whole)
	if err != nil {
		return err
	}
	return c.ask(ctx, s, question{text: "the emails of Sales", with: with, without: without,
		record: func(e *Employee) record { return record{id: e.ID, email: e.Email} }})
}

// scales is a policy that weighs answers.
type scales struct{ bytes atomic.Int64 }

func (x *scales) Do(req *policy.Request) (*http.Response, error) {
	answer, err := req.Next()
	if err != nil {
		return nil, err
	}
	body, err := runtime.Payload(answer)
	x.bytes.Add(int64(len(body)))
	return answer, err
}

// weighEmails: the requests are the same, and the answers are not.
func (c *company) weighEmails(ctx context.Context, s *section) error {
	weigh := &scales{}
	options := c.clientOptions()
	options.PerRetryPolicies = append(options.PerRetryPolicies, weigh) // each answer as it came
	account, err := tables.NewAccountFromConnectionString(c.place.connection, &tables.AccountOptions{ClientOptions: options})
	if err != nil {
		return err
	}
	plain, err := newPlain(account.Table(c.plain.Table().Name()))
	if err != nil {
		return err
	}
	return c.act(s, "the same answers, weighed", func() (string, error) {
		var weights []int64
		for _, query := range []tables.Query[Employee]{plain.Query().Partition(sales).Select("ID", "Email"), plain.Query().Partition(sales)} {
			weigh.bytes.Store(0)
			if _, err := collect(query.All(ctx)); err != nil {
				return "", err
			}
			weights = append(weights, weigh.bytes.Load())
		}
		if weights[0] >= weights[1] {
			return "", fmt.Errorf("%d bytes with a projection, %d without", weights[0], weights[1])
		}
		return fmt.Sprintf("%s bytes with a projection, %s without", grouped(int(weights[0])), grouped(int(weights[1]))), nil
	})
}

// Card is what one program knows of an employee's card, NewerCard what a later version of it does.
type (
	Card struct {
		tables.Meta
		PartitionKey, RowKey string
		Color                string
	}
	NewerCard struct {
		tables.Meta
		PartitionKey, RowKey string
		Color, Chip          string
	}
	// CarefulCard keeps what it does not know.
	CarefulCard struct {
		tables.Meta
		PartitionKey, RowKey string
		Color                string
		Rest                 map[string]tables.Value `table:",rest"`
	}
)

// mergeOrReplace: a replacement removes what the older program does not know; a merge leaves it.
func (c *company) mergeOrReplace(ctx context.Context, s *section) error {
	table, err := c.table(ctx, "Cards")
	if err != nil {
		return err
	}
	newer, err := tables.RowsOf[NewerCard](table)
	if err != nil {
		return err
	}
	older, err := tables.RowsOf[Card](table)
	if err != nil {
		return err
	}
	careful, err := tables.RowsOf[CarefulCard](table)
	if err != nil {
		return err
	}
	for n, x := range []struct {
		what  string
		write func(key tables.Key) error
		keeps bool
	}{
		{"a color merged by an older program", func(key tables.Key) error {
			return recolor(ctx, older.Get, older.Merge, func(v *Card) { v.Color = "blue" }, key)
		}, true},
		{"replaced, by one that keeps the rest", func(key tables.Key) error {
			return recolor(ctx, careful.Get, careful.Replace, func(v *CarefulCard) { v.Color = "blue" }, key)
		}, true},
		{"replaced, by one that does not", func(key tables.Key) error {
			return recolor(ctx, older.Get, older.Replace, func(v *Card) { v.Color = "blue" }, key)
		}, false},
	} {
		key := tables.Key{Partition: sales, Row: fmt.Sprintf("card_%d", n)}
		if err := newer.Insert(ctx, &NewerCard{PartitionKey: key.Partition, RowKey: key.Row, Color: "red", Chip: "A1"}); err != nil {
			return err
		}
		if err := c.act(s, x.what, func() (string, error) {
			if err := x.write(key); err != nil {
				return "", err
			}
			got, err := newer.Get(ctx, key)
			if err != nil {
				return "", err
			}
			if got.Color != "blue" || (got.Chip != "") != x.keeps {
				return "", errors.New("the card has not what it should have")
			}
			if x.keeps {
				return "the chip, which it does not know, stays", nil
			}
			return "the chip is gone", nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// recolor reads a card and writes it back.
func recolor[T any](ctx context.Context, get func(context.Context, tables.Key) (*T, error), write func(context.Context, *T) error, change func(*T), key tables.Key) error {
	v, err := get(ctx, key)
	if err != nil {
		return err
	}
	change(v)
	return write(ctx, v)
}
