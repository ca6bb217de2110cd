package storagetest_test

import (
	"context"
	"errors"
	"net"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"go.uber.org/goleak"

	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

func TestStopEndsAzuriteAndLeavesNoGoroutine(t *testing.T) {
	storagetest.AzuriteOnly(t)
	before := goleak.IgnoreCurrent()
	server := assert.Must[*storagetest.AzuriteServer](t)(storagetest.StartAzurite(t.Context(), nil))
	hosts := hostsOf(t, server.ConnectionString())
	// While it runs, too: users who check their tests for leaks must not be told of ours.
	goleak.VerifyNone(t, before)

	check(t, server.Stop())
	check(t, server.Stop())
	for _, host := range hosts {
		if accepts(host) {
			t.Errorf("%s still accepts connections after Stop", host)
		}
	}
	goleak.VerifyNone(t, before)
}

func TestServersAreApart(t *testing.T) {
	a, b := start(t, nil), start(t, nil)
	createTable(t, a.Service().ConnectionString, "Employees")
	assert.Len(t, tableNames(t.Context(), t, b.ConnectionString()), 0, "the second server has the first one's tables")
}

func TestLocationKeepsDataFromOneStartToTheNext(t *testing.T) {
	o := &storagetest.AzuriteOptions{Location: t.TempDir()}
	first := start(t, o)
	createTable(t, first.ConnectionString(), "Employees")
	check(t, first.Stop())

	second := start(t, o)
	if names := tableNames(t.Context(), t, second.ConnectionString()); !slices.Equal(names, []string{"Employees"}) {
		t.Errorf("tables after a restart: %v, want Employees", names)
	}
}

func TestStartStopsWhenItsContextEnds(t *testing.T) {
	start(t, nil) // so that what the context interrupts is the start, not the installation
	before := goleak.IgnoreCurrent()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	server, err := storagetest.StartAzurite(ctx, nil)
	if err == nil {
		server.Stop()
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want the context's", err)
	}
	goleak.VerifyNone(t, before)
}

func TestAServerThatCannotStartSaysWhy(t *testing.T) {
	storagetest.AzuriteOnly(t)
	// A file where the directory of the data should be.
	file := t.TempDir() + "/file"
	writeFile(t, file, "")
	server, err := storagetest.StartAzurite(t.Context(), &storagetest.AzuriteOptions{Location: file})
	if err == nil {
		server.Stop()
		t.Fatal("started with a file as its directory")
	}
	wantText(t, err.Error(), "starting Azurite", "EEXIST")
}

func createTable(t *testing.T, connectionString, name string) {
	t.Helper()
	tables := assert.Must[*aztables.ServiceClient](t)(aztables.NewServiceClientFromConnectionString(connectionString, nil))
	check(t, assert.Err(tables.CreateTable(t.Context(), name, nil)))
}

// hostsOf lists the host:port of the three services.
func hostsOf(t testing.TB, connectionString string) []string {
	t.Helper()
	var hosts []string
	for _, name := range []string{"TableEndpoint", "QueueEndpoint", "BlobEndpoint"} {
		u := assert.Must[*url.URL](t)(url.Parse(setting(t, connectionString, name)))
		hosts = append(hosts, u.Host)
	}
	return hosts
}

func accepts(host string) bool {
	conn, err := net.DialTimeout("tcp", host, time.Second)
	if err != nil {
		return false
	}
	conn.Close()
	return true
}
