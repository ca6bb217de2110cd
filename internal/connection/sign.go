package connection

import (
	"context"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/sas"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
)

// Signer signs an address of a blob. It is a function and not the credential itself, because package fmt,
// given a verb that does not fit, would print the credential behind a pointer field of an Account.
type Signer func(sas.BlobSignatureValues) (sas.QueryParameters, error)

// signerOf signs with an account's shared key.
func signerOf(key *service.SharedKeyCredential) Signer {
	return func(values sas.BlobSignatureValues) (sas.QueryParameters, error) {
		return values.SignWithSharedKey(key)
	}
}

// Delegated signs with a user delegation key, which it requests with a client that was made from a token
// credential. Requests: 1.
func Delegated(ctx context.Context, client *service.Client, from, to time.Time) (Signer, error) {
	start, end := from.Format(sas.TimeFormat), to.Format(sas.TimeFormat)
	credential, err := client.GetUserDelegationCredential(ctx, service.KeyInfo{Start: &start, Expiry: &end}, nil)
	if err != nil {
		return nil, err
	}
	return func(values sas.BlobSignatureValues) (sas.QueryParameters, error) {
		return values.SignWithUserDelegation(credential)
	}, nil
}
