package blobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	blobsas "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

// A signature for one container reads nothing of another by way of a copy: the source's address must have the right to it.
func TestCopyNeedsTheRightToItsSource(t *testing.T) {
	a, ctx := accounts.New(t, simulator.Options{}), probe.Context(t)
	key, err := blob.NewSharedKeyCredential(a.Account(), a.Key())
	probe.NoError(t, err)
	owner, err := blobservice.NewClientWithSharedKeyCredential(a.BlobEndpoint(), key, &blobservice.ClientOptions{ClientOptions: a.ClientOptions()})
	probe.NoError(t, err)
	mine, secret := owner.NewContainerClient("mine"), owner.NewContainerClient("secret")
	_, err = mine.Create(ctx, nil)
	probe.NoError(t, err)
	_, err = secret.Create(ctx, nil)
	probe.NoError(t, err)
	source := secret.NewBlockBlobClient("key")
	_, err = source.UploadBuffer(ctx, []byte("data"), nil)
	probe.NoError(t, err)
	_, err = mine.NewBlockBlobClient("by the owner").StartCopyFromURL(ctx, source.URL(), nil)
	probe.NoError(t, err)

	expiry := a.Clock().Now().Add(time.Hour)
	signed, err := mine.GetSASURL(blobsas.ContainerPermissions{Read: true, Write: true, Create: true}, expiry, nil)
	probe.NoError(t, err)
	address, query, _ := strings.Cut(signed, "?")
	guest, err := blockblob.NewClientWithNoCredential(address+"/copy?"+query, &blockblob.ClientOptions{ClientOptions: a.ClientOptions()})
	probe.NoError(t, err)
	for _, from := range []string{source.URL(), source.URL() + "?" + query} {
		_, err = guest.StartCopyFromURL(ctx, from, nil)
		probe.WantError(t, err, 403, "CannotVerifyCopySource")
	}
	readable, err := source.GetSASURL(blobsas.BlobPermissions{Read: true}, expiry, nil)
	probe.NoError(t, err)
	_, err = guest.StartCopyFromURL(ctx, readable, nil)
	probe.NoError(t, err)
	listable, err := secret.GetSASURL(blobsas.ContainerPermissions{List: true}, expiry, nil)
	probe.NoError(t, err)
	_, query, _ = strings.Cut(listable, "?")
	_, err = guest.StartCopyFromURL(ctx, source.URL()+"?"+query, nil)
	probe.WantError(t, err, 403, "CannotVerifyCopySource")
}

// The permission to create makes a new blob and leaves one that is there alone.
func TestCreatingIsNotOverwriting(t *testing.T) {
	a, ctx := accounts.New(t, simulator.Options{}), probe.Context(t)
	key, err := blob.NewSharedKeyCredential(a.Account(), a.Key())
	probe.NoError(t, err)
	owner, err := blobservice.NewClientWithSharedKeyCredential(a.BlobEndpoint(), key, &blobservice.ClientOptions{ClientOptions: a.ClientOptions()})
	probe.NoError(t, err)
	photos := owner.NewContainerClient("photos")
	_, err = photos.Create(ctx, nil)
	probe.NoError(t, err)
	for permissions, want := range map[blobsas.ContainerPermissions]bool{{Create: true}: false, {Write: true}: true} {
		signed, err := photos.GetSASURL(permissions, a.Clock().Now().Add(time.Hour), nil)
		probe.NoError(t, err)
		address, query, _ := strings.Cut(signed, "?")
		guest, err := blockblob.NewClientWithNoCredential(address+"/"+permissions.String()+"?"+query, &blockblob.ClientOptions{ClientOptions: a.ClientOptions()})
		probe.NoError(t, err)
		_, err = guest.UploadBuffer(ctx, []byte("first"), nil)
		probe.NoError(t, err)
		if _, err = guest.UploadBuffer(ctx, []byte("second"), nil); want {
			probe.NoError(t, err)
		} else {
			probe.WantError(t, err, 403, "AuthorizationPermissionMismatch")
		}
	}
}
