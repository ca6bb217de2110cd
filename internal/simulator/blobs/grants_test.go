package blobs_test

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	blobsas "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/simulator"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
	"github.com/tablepatterns/tablepatterns/internal/simulator/probe/accounts"
)

// A signature for one container reads nothing of another by way of a copy: the source's address must have the right to it.
func TestCopyNeedsTheRightToItsSource(t *testing.T) {
	a, ctx := accounts.New(t, simulator.Options{}), probe.Context(t)
	key := assert.Must[*blob.SharedKeyCredential](t)(blob.NewSharedKeyCredential(a.Account(), a.Key()))
	owner, err := blobservice.NewClientWithSharedKeyCredential(a.BlobEndpoint(), key, &blobservice.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	mine, secret := owner.NewContainerClient("mine"), owner.NewContainerClient("secret")
	assert.Check(t, assert.Err(mine.Create(ctx, nil)))
	assert.Check(t, assert.Err(secret.Create(ctx, nil)))
	source := secret.NewBlockBlobClient("key")
	assert.Check(t, assert.Err(source.UploadBuffer(ctx, []byte("data"), nil)))
	assert.Check(t, assert.Err(mine.NewBlockBlobClient("by the owner").StartCopyFromURL(ctx, source.URL(), nil)))

	expiry := a.Clock().Now().Add(time.Hour)
	signed := assert.Must[string](t)(mine.GetSASURL(blobsas.ContainerPermissions{Read: true, Write: true, Create: true}, expiry, nil))
	address, query, _ := strings.Cut(signed, "?")
	guest, err := blockblob.NewClientWithNoCredential(address+"/copy?"+query, &blockblob.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	for _, from := range []string{source.URL(), source.URL() + "?" + query} {
		_, err = guest.StartCopyFromURL(ctx, from, nil)
		probe.WantError(t, err, 403, "CannotVerifyCopySource")
	}
	readable := assert.Must[string](t)(source.GetSASURL(blobsas.BlobPermissions{Read: true}, expiry, nil))
	assert.Check(t, assert.Err(guest.StartCopyFromURL(ctx, readable, nil)))
	listable := assert.Must[string](t)(secret.GetSASURL(blobsas.ContainerPermissions{List: true}, expiry, nil))
	_, query, _ = strings.Cut(listable, "?")
	probe.WantError(t, assert.Err(guest.StartCopyFromURL(ctx, source.URL()+"?"+query, nil)), 403, "CannotVerifyCopySource")
}

// The permission to create makes a new blob and leaves one that is there alone.
func TestCreatingIsNotOverwriting(t *testing.T) {
	a, ctx := accounts.New(t, simulator.Options{}), probe.Context(t)
	key := assert.Must[*blob.SharedKeyCredential](t)(blob.NewSharedKeyCredential(a.Account(), a.Key()))
	owner, err := blobservice.NewClientWithSharedKeyCredential(a.BlobEndpoint(), key, &blobservice.ClientOptions{ClientOptions: a.ClientOptions()})
	assert.Check(t, err)
	photos := owner.NewContainerClient("photos")
	_, err = photos.Create(ctx, nil)
	assert.Check(t, err)
	for permissions, want := range map[blobsas.ContainerPermissions]bool{{Create: true}: false, {Write: true}: true} {
		signed := assert.Must[string](t)(photos.GetSASURL(permissions, a.Clock().Now().Add(time.Hour), nil))
		address, query, _ := strings.Cut(signed, "?")
		guest, err := blockblob.NewClientWithNoCredential(address+"/"+permissions.String()+"?"+query, &blockblob.ClientOptions{ClientOptions: a.ClientOptions()})
		assert.Check(t, err)
		_, err = guest.UploadBuffer(ctx, []byte("first"), nil)
		assert.Check(t, err)
		if _, err = guest.UploadBuffer(ctx, []byte("second"), nil); want {
			assert.Check(t, err)
		} else {
			probe.WantError(t, err, 403, "AuthorizationPermissionMismatch")
		}
	}
}
