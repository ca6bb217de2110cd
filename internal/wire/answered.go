package wire

import (
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// IsStatus reports whether err is a response of the service with this status. Responses to HEAD have no error code.
func IsStatus(err error, status int) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == status
}

// HasCode reports whether err is a response of the service with one of these error codes.
func HasCode(err error, codes ...string) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && slices.Contains(codes, answer.ErrorCode)
}
