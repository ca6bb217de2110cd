package wire

import (
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Brief returns the text of an error, "" for nil. The SDK's text of a response has many lines; Brief returns its status only.
func Brief(err error) string {
	var response *azcore.ResponseError
	switch {
	case err == nil:
		return ""
	case errors.As(err, &response):
		return fmt.Sprintf("status %d", response.StatusCode)
	}
	return err.Error()
}
