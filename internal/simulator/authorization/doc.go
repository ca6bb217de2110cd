// Package authorization tells who sends a request and what they may do: by the account's key (Shared Key and Shared Key Lite),
// by a bearer token, or by a shared access signature and the stored access policy that it may name.
//
// An Authority is given a request and the policies of the service it is for, and returns a Grant. The service asks the Grant
// whether it allows a Need. So the package imports no service and no form of requests: what a request needs, only the service
// that serves it knows.
package authorization
