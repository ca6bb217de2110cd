package httpapi

import (
	"log/slog"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/telemetry"
)

// Handler returns a handler that calls f and, if f returns an error, writes ProblemOf of the error. If f has already begun a response, Handler
// aborts it instead (http.ErrAbortHandler), so that the caller does not take a part for the whole.
//
// Handler logs each error to slog.Default, without texts in double quotes, since those can be keys: at the level Error if the status is 500 or
// more, otherwise Info.
func Handler(f func(w http.ResponseWriter, r *http.Request) error) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		response := &response{ResponseWriter: w}
		err := f(response, r)
		if err == nil {
			return
		}
		problem, level := ProblemOf(r, err), slog.LevelInfo
		if problem.Status >= http.StatusInternalServerError {
			level = slog.LevelError
		}
		slog.LogAttrs(r.Context(), level, "request failed", slog.String("method", r.Method), slog.String("route", r.Pattern), slog.Int("status", problem.Status),
			(*telemetry.Telemetry)(nil).Error(err))
		if response.begun {
			panic(http.ErrAbortHandler)
		}
		problem.Write(w)
	})
}

// response records whether a response has begun.
type response struct {
	http.ResponseWriter
	begun bool
}

// Unwrap lets http.ResponseController find the server's own writer.
func (r *response) Unwrap() http.ResponseWriter { return r.ResponseWriter }

// WriteHeader implements http.ResponseWriter. A status below 200 begins no response.
func (r *response) WriteHeader(status int) {
	r.begun = r.begun || status >= http.StatusOK || status == http.StatusSwitchingProtocols
	r.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter.
func (r *response) Write(body []byte) (int, error) {
	r.begun = true
	return r.ResponseWriter.Write(body)
}
