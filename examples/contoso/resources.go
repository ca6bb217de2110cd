package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/tables"
)

// resources are the tables, queues and containers that a run has made, by names that nobody else has.
type resources struct {
	tables, queues, containers []string

	drops   []drop // in the order they were made
	dropped bool
}

// drop removes one of them. What is not there is no error.
type drop struct {
	what string
	do   func(context.Context) error
}

// table makes a table, to be dropped at the end.
func (c *company) table(ctx context.Context, name string) (*tables.Table, error) {
	t := c.store.Table(name)
	c.tables = append(c.tables, t.Name())
	c.drops = append(c.drops, drop{"table " + t.Name(), func(ctx context.Context) error {
		if err := t.Drop(ctx); !errors.Is(err, tables.ErrMissingResource) {
			return err
		}
		return nil
	}})
	return t, t.Create(ctx)
}

// queue makes a queue with its poison queue and its container of large bodies, to be dropped at the end.
func (c *company) queue(ctx context.Context, name string, o *eventual.QueueOptions) (*eventual.Queue, error) {
	if o == nil && c.options.chaos {
		o = &eventual.QueueOptions{VisibilityTimeout: chaosVisibility}
	}
	q, err := c.store.Queue(name, o)
	if err != nil {
		return nil, err
	}
	return q, c.make(ctx, q)
}

// make creates a queue, to be dropped at the end.
func (c *company) make(ctx context.Context, q *eventual.Queue) error {
	c.queues = append(c.queues, q.Name())
	c.drops = append(c.drops, drop{"queue " + q.Name(), func(ctx context.Context) error {
		if err := q.Drop(ctx); !errors.Is(err, tables.ErrMissingResource) {
			return err
		}
		return nil
	}})
	return q.Create(ctx)
}

// container makes a blob container, to be dropped at the end.
func (c *company) container(ctx context.Context, name string) (*container.Client, error) {
	client := c.store.Container(name)
	if client == nil {
		return nil, errors.New("the account has no blob endpoint")
	}
	name = strings.ToLower(c.prefix) + "-" + name
	c.containers = append(c.containers, name)
	c.drops = append(c.drops, drop{"container " + name, func(ctx context.Context) error {
		_, err := client.Delete(ctx, nil)
		if answer := (*azcore.ResponseError)(nil); errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound {
			return nil
		}
		return err
	}})
	_, err := client.Create(ctx, nil)
	return client, err
}

// dropAll drops what was made, unless it is to be kept. It is done once.
func (c *company) dropAll(ctx context.Context) error {
	if c.dropped || c.options.keep {
		return nil
	}
	c.dropped = true
	var failed error
	for _, d := range slices.Backward(c.drops) {
		if err := d.do(ctx); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s is left on the account: %w", d.what, err))
		}
	}
	return failed
}

// close drops what is left, also after Ctrl-C, unless it ends with the place.
func (c *company) close() error {
	if !c.place.lasts {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	return c.dropAll(ctx)
}
