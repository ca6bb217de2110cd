package backup_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// killVariable tells a run of this test binary to be a process that is killed: the job, the folder, both tables and the token.
const killVariable = "BACKUP_KILL_CHILD"

// finished is what a process says at its end; before that it says the token of each report.
const finished = "finished"

// beJob runs one job, which says its tokens, until it is done or killed.
func beJob(t *testing.T, what string) {
	parts := strings.Split(what, "|")
	go func() {
		io.Copy(io.Discard, os.Stdin) // ends with the parent, however that ends
		os.Exit(1)
	}()
	account := harness.Account(t)
	from, to := account.Table(parts[2]), account.Table(parts[3])
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(parts[1]))
	o := &backup.Options{Concurrency: 2, Resume: parts[4], Progress: func(r tables.Progress) { fmt.Println("token:" + r.Resume) }}
	var err error
	switch parts[0] {
	case "backup":
		o.ChunkBytes = 4 << 10
		if o.Resume, err = v.Unfinished(t.Context(), "all"); err == nil {
			_, err = v.Backup(t.Context(), "all", []*tables.Table{from}, o)
		}
		if errors.Is(err, tables.ErrExists) && o.Resume == "" {
			err = nil // killed after the end
		}
	case "restore":
		_, err = v.Restore(t.Context(), "all", []backup.Target{{Name: from.Name(), To: to}}, o)
	case "copy":
		_, err = backup.Copy(t.Context(), from, to, o)
	}
	assert.Check(t, err, v.Close())
	fmt.Println("token:" + finished)
	os.Exit(0) // the goroutine that waits for the parent's end is no leak
}

// TestKilled kills processes that back up, restore and copy at random moments and starts them again: in the end there is no difference.
func TestKilled(t *testing.T) {
	if what := os.Getenv(killVariable); what != "" {
		beJob(t, what)
		return
	}
	storagetest.AzuriteOnly(t)
	n, kills := 2_200, 3
	if harness.Thorough() {
		n, kills = 20_000, 20
	}
	s := storagetest.Open(t)
	account := harness.Account(t)
	from, restored, copied := newTable(t, account), newTable(t, account), newTable(t, account)
	fill(t, from, n)
	folder := t.TempDir()
	dice := rand.New(rand.NewPCG(1, 2))
	for _, job := range []struct {
		name string
		to   *tables.Table
	}{{"backup", from}, {"restore", restored}, {"copy", copied}} {
		token, killed, runs := "", 0, 0
		for token != finished {
			after := 1 << 30
			if killed < kills {
				after = 1 + dice.IntN(3)
			}
			token, killed = runJob(t, s, strings.Join([]string{job.name, folder, from.Name(), job.to.Name(), token}, "|"), token, after, killed)
			if runs++; runs > 4*kills+4 {
				t.Fatal("no end")
			}
		}
		t.Logf("%s: %d processes killed, %d started", job.name, killed, runs)
		if killed == 0 || harness.Thorough() && job.name == "backup" && killed < kills {
			t.Errorf("%s: only %d of %d kills", job.name, killed, kills)
		}
	}
	v := assert.Must[*backup.Vault](t)(backup.OpenFolder(folder))
	defer v.Close()
	if report, err := v.Verify(t.Context(), "all", nil); err != nil || report.Read != int64(n) {
		t.Fatal(report, err)
	}
	wantSame(t, from, restored, n)
	wantSame(t, from, copied, n)
	for name := range files(t, folder) {
		if strings.Contains(name, "journal") {
			t.Errorf("%s is left", name)
		}
	}
}

// runJob starts a process and kills it some moments after it has said so many tokens. It returns the last one.
func runJob(t *testing.T, s *storagetest.Service, what, token string, after, killed int) (last string, kills int) {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), os.Args[0], "-test.run=^TestKilled$")
	cmd.Env = append(os.Environ(), killVariable+"="+what, "AZURE_STORAGE_CONNECTION_STRING="+s.ConnectionString)
	cmd.Stderr = os.Stderr
	keep := assert.Must[io.WriteCloser](t)(cmd.StdinPipe())
	defer keep.Close()
	out := assert.Must[io.ReadCloser](t)(cmd.StdoutPipe())
	assert.Check(t, cmd.Start())
	said := 0
	var rest strings.Builder
	for lines := bufio.NewScanner(out); lines.Scan(); {
		text, isToken := strings.CutPrefix(lines.Text(), "token:")
		if !isToken {
			rest.WriteString(lines.Text() + "\n")
			continue
		}
		if token = text; token == finished {
			break
		}
		if said++; said == after {
			assert.Check(t, cmd.Process.Kill())
			_ = cmd.Wait()
			return token, killed + 1
		}
	}
	_, _ = io.Copy(&rest, out)
	if err := cmd.Wait(); err != nil || token != finished {
		t.Fatalf("%v: %s", err, rest.String())
	}
	return token, killed
}
