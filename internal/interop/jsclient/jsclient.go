// Package jsclient runs scripts for Node.js with the package @azure/data-tables, Microsoft's client for
// JavaScript, in tests that need another program to read and write the same tables. The package is pinned in
// package.json and package-lock.json, and installed once into the user's cache directory, as storagetest
// installs Azurite.
package jsclient

import (
	"bytes"
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/npm"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

//go:embed package.json
var manifest []byte

//go:embed package-lock.json
var lock []byte

var packages = npm.Packages{Name: "@azure/data-tables", Dir: "data-tables", Manifest: manifest, Lock: lock,
	Entry: "node_modules/@azure/data-tables/package.json", Cost: "about 5 s", WithoutTools: "install Node.js 20 or newer with npm"}

// runTime limits a script.
const runTime = 2 * time.Minute

// prelude gives a script open(table), which returns a TableClient of the service's account.
const prelude = `
const { TableClient, AzureNamedKeyCredential, TableTransaction } = require("@azure/data-tables");
const open = (table) => new TableClient(process.env.TABLE_ENDPOINT, table,
	new AzureNamedKeyCredential(process.env.ACCOUNT_NAME, process.env.ACCOUNT_KEY), { allowInsecureConnection: true });
`

// Run runs a script in one process of Node.js, with input on its standard input, and returns its standard output. The script has
// TableClient, AzureNamedKeyCredential and TableTransaction of @azure/data-tables, and open(table), a client for a table of the service.
// The test fails if Node.js or npm is missing, the installation fails, or the script ends with an error. The simulator listens on a
// loopback address while the script runs.
func Run(t testing.TB, s *storagetest.Service, script string, input []byte) []byte {
	t.Helper()
	output, err := run(t.Context(), s, script, input, func(text string) { t.Log(text) })
	if err != nil {
		t.Fatal(err)
	}
	return output
}

func run(ctx context.Context, s *storagetest.Service, script string, input []byte, progress func(string)) ([]byte, error) {
	node, err := packages.Node()
	if err != nil {
		return nil, err
	}
	dir, err := packages.Install(ctx, progress)
	if err != nil {
		return nil, err
	}
	endpoint := s.TableEndpoint
	if s.Clock != nil {
		listening := httptest.NewServer(simulated(s))
		defer listening.Close()
		endpoint = listening.URL
	}
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "-e", prelude+script)
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(dir, "node_modules"), "TABLE_ENDPOINT="+endpoint, "ACCOUNT_NAME="+s.AccountName, "ACCOUNT_KEY="+s.AccountKey)
	cmd.Stdin = bytes.NewReader(input)
	var output, failures bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &failures
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the script ended with an error: %w: %.4000s", errors.Join(err, ctx.Err()), failures.String())
	}
	return output.Bytes(), nil
}

// simulated returns an HTTP handler that forwards requests to a simulator, since a simulator has no address
// of its own. Only the path and the query of a request are signed.
func simulated(s *storagetest.Service) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		forwarded := r.Clone(r.Context())
		address, err := url.Parse(s.TableEndpoint)
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		forwarded.URL.Scheme, forwarded.URL.Host, forwarded.Host, forwarded.RequestURI = address.Scheme, address.Host, address.Host, ""
		answer, err := s.ClientOptions.Transport.Do(forwarded)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadGateway)
			return
		}
		defer answer.Body.Close()
		maps.Copy(w.Header(), answer.Header)
		w.WriteHeader(answer.StatusCode)
		_, _ = io.Copy(w, answer.Body)
	})
}
