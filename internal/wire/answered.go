package wire

import (
	"errors"
	"slices"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
)

// IsStatus reports whether err is an answer of the service with this status. Answers to HEAD carry no code.
func IsStatus(err error, status int) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && answer.StatusCode == status
}

// HasCode reports whether err is an answer of the service with one of these codes.
func HasCode(err error, codes ...string) bool {
	var answer *azcore.ResponseError
	return errors.As(err, &answer) && slices.Contains(codes, answer.ErrorCode)
}
