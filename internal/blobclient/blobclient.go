// Package blobclient makes the SDK's clients of an account's blob service. Only programs that use blobs link it.
package blobclient

import (
	"context"
	"net/url"
	"path"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tablepatterns/tablepatterns/internal/connection"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/internal/stores"
	"github.com/tablepatterns/tablepatterns/internal/wire"
)

// Service returns the account's client, nil without a blob endpoint.
func Service(account *core.Account) *service.Client {
	if account == nil {
		return nil
	}
	return core.Client(account, connection.Blobs, account.Endpoints().Blob, open)
}

func open(endpoint string, secret connection.Secret, options azcore.ClientOptions) (*service.Client, error) {
	o := &service.ClientOptions{ClientOptions: options}
	switch {
	case secret.Token != nil:
		return service.NewClient(endpoint, secret.Token, o)
	case secret.Key != "":
		key, err := service.NewSharedKeyCredential(secret.Name, secret.Key)
		if err != nil {
			return nil, err
		}
		return service.NewClientWithSharedKeyCredential(endpoint, key, o)
	}
	return service.NewClientWithNoCredential(secret.Signed(endpoint), o)
}

// Container returns the account's client of one container, nil without a blob endpoint.
func Container(account *core.Account, name string) *container.Client {
	client := Service(account)
	if client == nil {
		return nil
	}
	return client.NewContainerClient(name)
}

// Entry returns a container as something that a store creates; for a nil container, nothing.
func Entry(c *container.Client) stores.Entry {
	if c == nil {
		return stores.Entry{}
	}
	address, _, _ := strings.Cut(c.URL(), "?") // a signature may follow the question mark
	return stores.Entry{ID: stores.ID{Name: "container " + address},
		Parts: []resource.Resource{{Kind: resource.Container, Name: address, Check: func(ctx context.Context) error {
			if _, err := c.GetProperties(ctx, nil); err != nil {
				return core.ServiceError("Ready", address, err)
			}
			return nil
		}}},
		Create: func(ctx context.Context) error {
			if err := resource.CheckName(path.Base(address)); err != nil {
				return errs.Invalid("Create", err)
			}
			_, err := c.Create(ctx, nil)
			if err == nil || wire.HasCode(err, "ContainerAlreadyExists") {
				return nil
			}
			return core.ServiceError("Create", address, err)
		}}
}

// Sign is blobstorage.Sign.
func Sign(ctx context.Context, account *core.Account, containerName, blobName string, expiry time.Time) (string, error) {
	const (
		op = "Sign"
		// maxSigned is the service's limit for a user delegation key. Sign also applies it to addresses signed with
		// the account's key, since only regenerating that key revokes them.
		maxSigned = 7 * 24 * time.Hour
		clockSkew = 5 * time.Minute // the user delegation key is valid from this long ago, for services whose clock is behind
	)
	now := time.Now()
	client := Service(account)
	switch {
	case client == nil:
		return "", errs.Wiringf(op, "", "the account has no blob endpoint; give one in Endpoints")
	case containerName == "" || blobName == "":
		return "", errs.Invalidf(op, "the name of the container or of the blob is empty; both are needed")
	case !expiry.After(now) || expiry.After(now.Add(maxSigned)):
		return "", errs.Invalidf(op, "the expiry is %v from now; it must be more than 0 and at most %v", expiry.Sub(now).Round(time.Second), maxSigned)
	}
	values := sas.BlobSignatureValues{ContainerName: containerName, BlobName: blobName, ExpiryTime: expiry.UTC(),
		Permissions: (&sas.BlobPermissions{Read: true}).String()}
	if u, err := url.Parse(account.Endpoints().Blob); err != nil || strings.EqualFold(u.Scheme, "https") {
		values.Protocol = sas.ProtocolHTTPS
	}
	var query sas.QueryParameters
	secret, err := account.Secret(), error(nil)
	switch {
	case secret.Token != nil:
		values.StartTime = now.Add(-clockSkew).UTC()
		start, end := values.StartTime.Format(sas.TimeFormat), values.ExpiryTime.Format(sas.TimeFormat)
		credential, refused := client.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &start, Expiry: &end}, nil)
		if refused != nil {
			return "", core.ServiceError(op, containerName, refused)
		}
		query, err = values.SignWithUserDelegation(credential)
	case secret.Key != "":
		var key *service.SharedKeyCredential
		if key, err = service.NewSharedKeyCredential(secret.Name, secret.Key); err == nil {
			query, err = values.SignWithSharedKey(key)
		}
	default:
		return "", errs.Wiringf(op, "", "an account made from a %s cannot sign; use one with a shared key or a token credential", account.Source())
	}
	if err != nil {
		return "", errs.Invalid(op, wire.Redact(err))
	}
	return client.NewContainerClient(containerName).NewBlobClient(blobName).URL() + "?" + query.Encode(), nil
}
