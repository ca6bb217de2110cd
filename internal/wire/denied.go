package wire

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
)

// denied is an error of a response that refused the credential, with what the response says about the cause.
type denied struct {
	error
	reason string
}

func (e *denied) Unwrap() error { return e.error }

// Reason returns the cause, for the text of an error.
func (e *denied) Reason() string { return e.reason }

// authenticationDetail is what the services say about a signature that they refuse, in XML or JSON.
var authenticationDetail = regexp.MustCompile(`(?s)AuthenticationErrorDetail"?\s*[>:]\s*"?([^<"]*)`)

// tolerance is by how much two clocks may differ before an error says so: the service accepts 15 minutes, and the age of the response counts.
const tolerance = time.Minute

// Denied adds to an error of a response with status 401 or 403 why the service refused the credential, as far as the response says that,
// and how far the clock of the service is from this one.
func Denied(err error) error {
	answer, ok := errors.AsType[*azcore.ResponseError](err)
	if !ok || answer.RawResponse == nil || answer.StatusCode != http.StatusForbidden && answer.StatusCode != http.StatusUnauthorized {
		return err
	}
	var reasons []string
	if body, failed := runtime.Payload(answer.RawResponse); failed == nil {
		if found := authenticationDetail.FindSubmatch(body); found != nil {
			detail := strings.Join(strings.Fields(strings.ToValidUTF8(RedactText(string(found[1])), "")), " ")
			reasons = append(reasons, detail[:min(len(detail), 300)])
		}
	}
	if date, failed := http.ParseTime(answer.RawResponse.Header.Get("Date")); failed == nil {
		switch ahead := time.Until(date).Round(time.Second); {
		case ahead > tolerance:
			reasons = append(reasons, fmt.Sprintf("the clock of this computer is %v behind the service's; set it, since signatures hold for 15 minutes", ahead))
		case ahead < -tolerance:
			reasons = append(reasons, fmt.Sprintf("the clock of this computer is %v ahead of the service's; set it, since signatures hold for 15 minutes", -ahead))
		}
	}
	if len(reasons) == 0 {
		return err
	}
	return &denied{err, strings.Join(reasons, "; ")}
}
