package simulator

import (
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	blobsas "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	blobservice "github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// A signature for one container reads nothing of another by way of a copy: the source's address must have the right to it.
func TestCopyNeedsTheRightToItsSource(t *testing.T) {
	a, ctx := newAccount(t, Options{}), testContext(t)
	key, err := blob.NewSharedKeyCredential(a.Account(), a.Key())
	noError(t, err)
	owner, err := blobservice.NewClientWithSharedKeyCredential(a.BlobEndpoint(), key, &blobservice.ClientOptions{ClientOptions: a.clientOptions()})
	noError(t, err)
	mine, secret := owner.NewContainerClient("mine"), owner.NewContainerClient("secret")
	_, err = mine.Create(ctx, nil)
	noError(t, err)
	_, err = secret.Create(ctx, nil)
	noError(t, err)
	source := secret.NewBlockBlobClient("key")
	_, err = source.UploadBuffer(ctx, []byte("data"), nil)
	noError(t, err)
	_, err = mine.NewBlockBlobClient("by the owner").StartCopyFromURL(ctx, source.URL(), nil)
	noError(t, err)

	expiry := a.Clock().Now().Add(time.Hour)
	signed, err := mine.GetSASURL(blobsas.ContainerPermissions{Read: true, Write: true, Create: true}, expiry, nil)
	noError(t, err)
	address, query, _ := strings.Cut(signed, "?")
	guest, err := blockblob.NewClientWithNoCredential(address+"/copy?"+query, &blockblob.ClientOptions{ClientOptions: a.clientOptions()})
	noError(t, err)
	for _, from := range []string{source.URL(), source.URL() + "?" + query} {
		_, err = guest.StartCopyFromURL(ctx, from, nil)
		wantSDKError(t, err, 403, "CannotVerifyCopySource")
	}
	readable, err := source.GetSASURL(blobsas.BlobPermissions{Read: true}, expiry, nil)
	noError(t, err)
	_, err = guest.StartCopyFromURL(ctx, readable, nil)
	noError(t, err)
	listable, err := secret.GetSASURL(blobsas.ContainerPermissions{List: true}, expiry, nil)
	noError(t, err)
	_, query, _ = strings.Cut(listable, "?")
	_, err = guest.StartCopyFromURL(ctx, source.URL()+"?"+query, nil)
	wantSDKError(t, err, 403, "CannotVerifyCopySource")
}

// The permission to create makes a new blob and leaves one that is there alone.
func TestCreatingIsNotOverwriting(t *testing.T) {
	a, ctx := newAccount(t, Options{}), testContext(t)
	key, err := blob.NewSharedKeyCredential(a.Account(), a.Key())
	noError(t, err)
	owner, err := blobservice.NewClientWithSharedKeyCredential(a.BlobEndpoint(), key, &blobservice.ClientOptions{ClientOptions: a.clientOptions()})
	noError(t, err)
	photos := owner.NewContainerClient("photos")
	_, err = photos.Create(ctx, nil)
	noError(t, err)
	for permissions, want := range map[blobsas.ContainerPermissions]bool{{Create: true}: false, {Write: true}: true} {
		signed, err := photos.GetSASURL(permissions, a.Clock().Now().Add(time.Hour), nil)
		noError(t, err)
		address, query, _ := strings.Cut(signed, "?")
		guest, err := blockblob.NewClientWithNoCredential(address+"/"+permissions.String()+"?"+query, &blockblob.ClientOptions{ClientOptions: a.clientOptions()})
		noError(t, err)
		_, err = guest.UploadBuffer(ctx, []byte("first"), nil)
		noError(t, err)
		if _, err = guest.UploadBuffer(ctx, []byte("second"), nil); want {
			noError(t, err)
		} else {
			wantSDKError(t, err, 403, "AuthorizationPermissionMismatch")
		}
	}
}
