// Package authorization identifies the sender of a request and what the sender may do: by the account's key (Shared Key and
// Shared Key Lite), by a bearer token, or by a shared access signature and the stored access policy that it may name.
//
// An Authority gets a request and the policies of its service, and returns a Grant. The service asks the Grant whether it
// allows a Need. So this package imports no service and does not interpret requests: only the service knows what a request
// needs.
package authorization
