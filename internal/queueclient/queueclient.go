// Package queueclient makes the SDK's client of an account's queue service. Only programs that use queues link it.
package queueclient

import (
	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue/v2"

	"github.com/tablepatterns/tablepatterns/internal/connection"
	"github.com/tablepatterns/tablepatterns/internal/core"
)

// Service returns the account's client, nil without a queue endpoint.
func Service(account *core.Account) *azqueue.ServiceClient {
	if account == nil {
		return nil
	}
	return core.Client(account, connection.Queues, account.Endpoints().Queue, open)
}

func open(endpoint string, secret connection.Secret, options azcore.ClientOptions) (*azqueue.ServiceClient, error) {
	o := &azqueue.ClientOptions{ClientOptions: options}
	switch {
	case secret.Token != nil:
		return azqueue.NewServiceClient(endpoint, secret.Token, o)
	case secret.Key != "":
		key, err := azqueue.NewSharedKeyCredential(secret.Name, secret.Key)
		if err != nil {
			return nil, err
		}
		return azqueue.NewServiceClientWithSharedKeyCredential(endpoint, key, o)
	}
	return azqueue.NewServiceClientWithNoCredential(secret.Signed(endpoint), o)
}
