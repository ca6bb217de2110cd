package wire

import (
	"errors"
	"fmt"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// Brief returns the text of an error, or "" for nil. For a response of the service it returns only the status, because the
// SDK's text has many lines.
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
