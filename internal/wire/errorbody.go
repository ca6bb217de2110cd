package wire

import (
	"bytes"
	"encoding/json"
)

// ErrorCode returns code and message of the service's error body: {"odata.error":{"code":..,"message":{"value":..}}}. Both
// are empty if the body has another form.
func ErrorCode(body []byte) (code, message string) {
	var parsed struct {
		Error struct {
			Code    string `json:"code"`
			Message struct {
				Value string `json:"value"`
			} `json:"message"`
		} `json:"odata.error"`
	}
	if json.Unmarshal(bytes.TrimSpace(body), &parsed) != nil {
		return "", ""
	}
	return parsed.Error.Code, parsed.Error.Message.Value
}
