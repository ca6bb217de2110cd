// Package blobstorage makes the SDK's clients for the blobs of an account, with its credential and AccountOptions.ClientOptions. It is a package of
// its own, so that a program without blobs does not link the SDK's client for them.
package blobstorage

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tablepatterns/tablepatterns/internal/blobclient"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/handle"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Service returns the SDK's client for the blob service, nil without a blob endpoint. Requests: 0.
func Service(account *tables.Account) *service.Client {
	return blobclient.Service((*core.Account)(account))
}

// Container returns the SDK's client for one blob container, nil without a blob endpoint. Requests: 0.
func Container(account *tables.Account, name string) *container.Client {
	return blobclient.Container((*core.Account)(account), name)
}

// Open returns a client for a blob container of a store, which Store.Create creates, nil without a blob endpoint. The name gets the store's Prefix.
// Requests: 0.
func Open(s *patterns.Store, name string) *container.Client {
	if s == nil {
		return nil
	}
	of, ok := (*handle.Any)(s).Value().(stores.Store)
	if !ok {
		return nil
	}
	c := blobclient.Container(of.Account(), of.Lower(name))
	if c != nil {
		of.Know(blobclient.Entry(c))
	}
	return c
}

// Resource returns a container for a pattern's Implementation, so that Store.Create creates it. Requests: 0.
func Resource(c *container.Client) driver.Container {
	if c == nil {
		return driver.Container{}
	}
	return driver.Container(handle.New(blobclient.Entry(c)))
}

// Sign returns an address under which anybody can read one blob, until expiry, at most 7 days from now: a shared access signature, and a secret. It
// works over https only, unless the account's endpoint is http. An account with a token credential signs with a user delegation key, for which it
// needs the role Storage Blob Delegator; one made from a shared access signature cannot sign: ErrWiring.
//
// Requests: 0; with a token credential 1.
func Sign(ctx context.Context, account *tables.Account, containerName, blobName string, expiry time.Time) (string, error) {
	return blobclient.Sign(ctx, (*core.Account)(account), containerName, blobName, expiry)
}
