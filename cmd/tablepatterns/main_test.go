package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/inspect"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// shell runs command lines on one account of the simulator.
type shell struct {
	t       *testing.T
	service *storagetest.Service
	account *tables.Account
	bars    bool
}

const variable = "TEST_CONNECTION"

func newShell(t *testing.T) *shell {
	t.Helper()
	s := storagetest.Simulator(t, nil)
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions})
	if err != nil {
		t.Fatal(err)
	}
	return &shell{t: t, service: s, account: account}
}

// run runs a command line, and fails the test at another exit code.
func (s *shell) run(code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	return s.runIn(s.t.Context(), code, args...)
}

func (s *shell) runIn(ctx context.Context, code int, args ...string) (stdout, stderr string) {
	s.t.Helper()
	var out, failed bytes.Buffer
	p := &program{stdout: &out, stderr: &failed, bars: s.bars, options: &tables.AccountOptions{ClientOptions: s.service.ClientOptions, Logger: slog.New(slog.DiscardHandler)}, getenv: func(name string) string {
		if name == variable {
			return s.service.ConnectionString
		}
		return ""
	}}
	if got := p.run(ctx, append([]string{"--connection-env", variable}, args...)); got != code {
		s.t.Errorf("%q: exit code %d, want %d\n%s%s", args, got, code, &out, &failed)
	}
	if text := out.String() + failed.String(); strings.Contains(text, s.service.AccountKey) {
		s.t.Errorf("%q shows the account's key", args)
	}
	return out.String(), failed.String()
}

// fill makes a table of n rows.
func (s *shell) fill(name string, n int) *tables.Table {
	s.t.Helper()
	table := s.account.Table(name)
	if err := table.Create(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	if _, err := table.Entities().BulkNonAtomic(s.t.Context(), func(yield func(*tables.Entity, error) bool) {
		for i := range n {
			partition := fmt.Sprintf("customer-%03d", int(random.ExpFloat64()*20))
			e := &tables.Entity{Key: tables.Key{Partition: partition, Row: fmt.Sprintf("O-%06d", i)}}
			e.Set("Email", tables.String(fmt.Sprintf("c%d@contoso.com", i)))
			e.Set("Total", tables.Double(float64(i)/4))
			if i%3 == 0 {
				e.Set("Note", tables.String(strings.Repeat("x", int(random.ExpFloat64()*900))))
			}
			if !yield(e, nil) {
				return
			}
		}
	}, nil); err != nil {
		s.t.Fatal(err)
	}
	return table
}

// TestInspect: text, JSON, struct, and a page of HTML that is never written over another file.
func TestInspect(t *testing.T) {
	s := newShell(t)
	s.fill("Orders", 2_000)
	text, _ := s.run(exitOK, "inspect", "Orders")
	if !strings.Contains(text, "Table Orders: 2,000 rows") || !strings.Contains(text, "Email") {
		t.Error(text)
	}
	asJSON, _ := s.run(exitOK, "inspect", "Orders", "--json", "--partition", "customer-000", "--concurrency", "2")
	var r inspect.Report
	if err := json.Unmarshal([]byte(asJSON), &r); err != nil || r.Version != 1 || r.Partitions.Count != 1 || r.Rows == 0 {
		t.Errorf("%v: %s", err, asJSON)
	}
	if source, _ := s.run(exitOK, "inspect", "Orders", "--struct", "--package", "orders"); !strings.HasPrefix(source, "package orders\n") || !strings.Contains(source, "Note  *string") {
		t.Error(source)
	}
	file := filepath.Join(t.TempDir(), "orders.html")
	s.run(exitOK, "inspect", "Orders", "--html", file)
	page, err := os.ReadFile(file)
	if err != nil || bytes.Count(page, []byte("<svg")) != 2 || bytes.Contains(page, []byte("http:")) && !bytes.Contains(page, []byte("http://www.w3.org")) || bytes.Contains(page, []byte("<script")) {
		t.Errorf("%v: %s", err, page)
	}
	if name := os.Getenv("TABLEPATTERNS_PAGE"); name != "" {
		os.WriteFile(name, page, 0o600)
	}
	if _, failed := s.run(exitError, "inspect", "Orders", "--html", file); !strings.Contains(failed, "exists") {
		t.Error(failed)
	}
	s.run(exitOK, "inspect", "Orders", "--html", file, "--overwrite")
}

// TestWrongCalls: what is refused, with the exit code of an error and a text that says what to do.
func TestWrongCalls(t *testing.T) {
	s := newShell(t)
	for want, args := range map[string][]string{
		"unknown command":        {"explode"},
		"accepts 1 arg":          {"inspect"},
		"unknown flag":           {"inspect", "Orders", "--key", "x"},
		"MISSING is empty":       {"inspect", "Orders", "--connection-env", "MISSING"},
		"none of the others can": {"inspect", "Orders", "--json", "--struct"},
		"missing table":          {"inspect", "Nowhere"},
		"Concurrency":            {"inspect", "Orders", "--concurrency", "-1"},
		"RowsPerSecond":          {"inspect", "Orders", "--rows-per-second", "-1"},
	} {
		if _, failed := s.run(exitError, args...); !strings.Contains(failed, want) {
			t.Errorf("%q: no %q in %q", args, want, failed)
		}
	}
	if text, _ := s.run(exitOK, "--help"); !strings.Contains(text, "Exit codes") {
		t.Error(text)
	}
}

// TestInterruptedInspect: what was read until then is printed, and the exit code tells.
func TestInterruptedInspect(t *testing.T) {
	s := newShell(t)
	s.fill("Orders", 10)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, failed := s.runIn(ctx, exitError, "inspect", "Orders"); !strings.Contains(failed, "interrupted") {
		t.Error(failed)
	}
}

// TestHostilePage: keys and names cannot leave their places in the page.
func TestHostilePage(t *testing.T) {
	evil := `"><script>alert(1)</script><svg onload=x>` + strings.Repeat("y", 1000) + "\u202e\x00"
	page, err := htmlPage(&inspect.Report{Table: evil, Warnings: []string{evil}, Partitions: inspect.Partitions{Largest: []inspect.Partition{{Partition: evil, Rows: 1}}},
		LargestRows: []inspect.LargeRow{{Key: inspect.Key{Partition: evil, Row: evil}}}, Properties: []inspect.Property{{Name: evil, Types: []inspect.TypeCount{{Type: evil}}}}})
	if err != nil || bytes.Contains(page, []byte("<script")) || bytes.Contains(page, []byte("<svg")) {
		t.Errorf("%v: %s", err, page)
	}
}

// TestProgress: progress is shown on the standard error, and never among the results.
func TestProgress(t *testing.T) {
	s := newShell(t)
	s.fill("Orders", 2_500)
	s.bars = true
	for _, args := range [][]string{{"inspect", "Orders", "--rows-per-second", "20000"}, {"copy", "Orders", "Copied", "--create"}} {
		out, failed := s.run(exitOK, args...)
		if strings.ContainsAny(out, "\r\x1b") || !strings.Contains(failed, "\r") || !strings.Contains(failed, "rows/") {
			t.Errorf("%q: %q, %q", args, out, failed)
		}
		if _, failed := s.run(exitOK, append(args, "--quiet")...); failed != "" {
			t.Errorf("%q: %q", args, failed)
		}
	}
}
