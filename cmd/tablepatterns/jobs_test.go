package main

import (
	"context"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// change sets a property of one row.
func (s *shell) change(table *tables.Table, text string) {
	s.t.Helper()
	for e, err := range table.Entities().Query().AllowTableScan().Top(1).All(s.t.Context()) {
		if err == nil {
			e.Set("Email", tables.String(text))
			err = table.Entities().Replace(s.t.Context(), e)
		}
		if err != nil {
			s.t.Fatal(err)
		}
	}
}

// TestCopyAndCompare: a copy is equal; rows with other content are refused, left or overwritten as the caller says.
func TestCopyAndCompare(t *testing.T) {
	s := newShell(t)
	s.fill("Orders", 300)
	if _, failed := s.run(exitError, "copy", "Orders", "Copied"); !strings.Contains(failed, "missing table") {
		t.Error(failed)
	}
	text, _ := s.run(exitOK, "copy", "Orders", "Copied", "--create")
	if !strings.Contains(text, "300 read") || !strings.Contains(text, "300 written") {
		t.Error(text)
	}
	s.run(exitOK, "compare", "Orders", "Copied")
	if text, _ := s.run(exitOK, "copy", "Orders", "Copied"); !strings.Contains(text, "300 unchanged") {
		t.Error(text)
	}
	s.change(s.account.Table("Copied"), "secret@contoso.com")
	for _, args := range [][]string{{"compare", "Orders", "Copied"}, {"copy", "Orders", "Copied", "--dry-run"}, {"copy", "Orders", "Copied", "--existing", "skip"}} {
		if text, _ := s.run(exitDifference, args...); strings.Count(text, "different: ") != 1 || !strings.Contains(text, ": Email") || strings.Contains(text, "secret") {
			t.Errorf("%q: %s", args, text)
		}
	}
	if _, failed := s.run(exitError, "copy", "Orders", "Copied"); !strings.Contains(failed, "exists") {
		t.Error(failed)
	}
	s.run(exitDifference, "compare", "Orders", "Copied")
	s.run(exitOK, "copy", "Orders", "Copied", "--existing", "replace")
	s.run(exitOK, "compare", "Orders", "Copied", "--to-connection-env", variable)
}

// after is a policy that cancels a run before its nth request.
func after(n int64, cancel func()) policy.Policy {
	return &canceling{left: n, cancel: cancel}
}

type canceling struct {
	made   atomic.Int64
	left   int64
	cancel func()
}

func (c *canceling) Do(req *policy.Request) (*http.Response, error) {
	if c.made.Add(1) == c.left {
		c.cancel()
	}
	return req.Next()
}

// TestInterruptedCopy: an interrupted copy says how to go on, does so from its file, and removes the file.
func TestInterruptedCopy(t *testing.T) {
	t.Chdir(t.TempDir())
	s := newShell(t)
	s.fill("Orders", 2_500)
	for _, named := range []string{"", "orders.resume"} {
		destination := "Copied" + strings.TrimSuffix(named, ".resume")
		s.run(exitOK, "copy", "Orders", destination, "--create", "--partition", "none")
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		usual := s.service.ClientOptions.PerCallPolicies
		s.service.ClientOptions.PerCallPolicies = append(slices.Clip(usual), after(80, cancel))
		args := []string{"copy", "Orders", destination, "--concurrency", "1"}
		if named != "" {
			args = append(args, "--resume", named)
		}
		_, failed := s.runIn(ctx, exitError, args...)
		s.service.ClientOptions.PerCallPolicies = usual
		_, file, ok := strings.Cut(failed, "--resume ")
		file, _, _ = strings.Cut(file, "\n")
		if info, err := os.Stat(file); !ok || err != nil || info.Mode().Perm() != 0o600 || named != "" && file != named || !strings.Contains(failed, "interrupted") {
			t.Fatalf("%q, %v", failed, err)
		}
		if _, failed := s.run(exitError, "compare", "Orders", destination, "--resume", file); !strings.Contains(failed, `the command "copy"`) {
			t.Error(failed)
		}
		text, _ := s.run(exitOK, "copy", "Orders", destination, "--resume", file)
		if _, err := os.Stat(file); !os.IsNotExist(err) || strings.Contains(text, "2,500 read") || strings.Contains(text, "2500 read") {
			t.Errorf("%v, %s", err, text)
		}
		s.run(exitOK, "compare", "Orders", destination)
	}
	if err := os.WriteFile("other", []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, failed := s.run(exitError, "copy", "Orders", "Copied", "--resume", "other"); !strings.Contains(failed, "is not the position") {
		t.Error(failed)
	}
}

// TestBackupAndRestore: a backup is restored equal; its name is never used twice; damage is found.
func TestBackupAndRestore(t *testing.T) {
	s := newShell(t)
	s.fill("Orders", 300)
	s.fill("Customers", 50)
	folder := t.TempDir()
	s.run(exitOK, "backup", "monday", "Orders", "Customers", "--folder", folder)
	if _, failed := s.run(exitError, "backup", "monday", "Orders", "--folder", folder); !strings.Contains(failed, "to continue an interrupted backup, give --resume") {
		t.Error(failed)
	}
	if text, _ := s.run(exitOK, "verify", "monday", "--folder", folder); !strings.Contains(text, "Orders: 300 rows") {
		t.Error(text)
	}
	s.run(exitOK, "restore", "monday", "--folder", folder, "--table", "Orders=Restored", "--table", "Customers=RestoredToo", "--create")
	s.run(exitOK, "compare", "Orders", "Restored")
	s.run(exitOK, "compare", "Customers", "RestoredToo")
	s.run(exitOK, "compare", "Orders", "Restored", "--backup", "monday", "--folder", folder)
	s.change(s.account.Table("Orders"), "new@contoso.com")
	s.run(exitDifference, "compare", "Orders", "Orders", "--backup", "monday", "--folder", folder)
	s.run(exitError, "restore", "monday", "--folder", folder, "--table", "Orders")
	s.run(exitOK, "restore", "monday", "--folder", folder, "--table", "Orders", "--table", "Customers", "--existing", "replace")
	s.run(exitOK, "compare", "Orders", "Restored")
	s.run(exitOK, "backup", "tuesday", "Orders", "--folder", folder, "--resume", "--base", "monday")
	damage(t, filepath.Join(folder, "chunks"))
	if text, _ := s.run(exitDifference, "verify", "monday", "--folder", folder); !strings.Contains(text, "damaged: chunks/") {
		t.Error(text)
	}
	if err := os.WriteFile(filepath.Join(folder, "broken.manifest"), []byte("x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, _ := s.run(exitDifference, "verify", "broken", "--folder", folder); !strings.Contains(text, "damaged: ") {
		t.Error(text)
	}
	s.run(exitOK, "backup", "part", "Orders", "--folder", folder, "--partition", "none")
	if text, _ := s.run(exitOK, "verify", "part", "--folder", folder); !strings.Contains(text, `only the partitions ["none"]`) {
		t.Error(text)
	}
	for want, args := range map[string][]string{
		"one of --folder and": {"verify", "monday"},
		"leave out --partiti": {"verify", "monday", "--folder", folder, "--partition", "a"},
		"--existing is":       {"copy", "Orders", "Restored", "--existing", "perhaps"},
		"--table is missing":  {"restore", "monday", "--folder", folder, "--existing", "replace"},
		"no table":            {"restore", "tuesday", "--folder", folder, "--table", "Nowhere"},
	} {
		if _, failed := s.run(exitError, args...); !strings.Contains(failed, want) {
			t.Errorf("%q: no %q in %q", args, want, failed)
		}
	}
}

// damage changes a byte of every file.
func damage(t *testing.T, folder string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		files++
		data[len(data)/2] ^= 1
		return os.WriteFile(name, data, 0o600)
	})
	if err != nil || files == 0 {
		t.Fatal(files, err)
	}
}

// TestBackupInContainer: the vault in a container.
func TestBackupInContainer(t *testing.T) {
	s := newShell(t)
	s.fill("Orders", 30)
	if _, err := blobstorage.Container(s.account, "backups").Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	vault := []string{"--container", "backups", "--prefix", "orders"}
	s.run(exitOK, append([]string{"backup", "monday", "Orders"}, vault...)...)
	s.run(exitOK, append([]string{"verify", "monday"}, vault...)...)
	s.run(exitOK, append([]string{"restore", "monday", "--table", "Orders=Restored", "--create"}, vault...)...)
	s.run(exitOK, append([]string{"compare", "Orders", "Restored", "--backup", "monday", "--vault-connection-env", variable}, vault...)...)
}

// TestBlobs: a set of blobs is backed up and restored with its table.
func TestBlobs(t *testing.T) {
	s := newShell(t)
	s.fill("Staff", 10)
	for _, name := range []string{"photos", "restored"} {
		if _, err := blobstorage.Container(s.account, name).Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := blobstorage.Container(s.account, "photos").NewBlockBlobClient("staff/photos/ABC/1").UploadBuffer(t.Context(), []byte("picture"), nil); err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	s.run(exitOK, "backup", "monday", "Staff", "--folder", folder, "--blobs", "photos=Staff,photos,staff/photos")
	if text, _ := s.run(exitOK, "verify", "monday", "--folder", folder); !strings.Contains(text, "photos: 1 blobs, 7 bytes") {
		t.Error(text)
	}
	text, _ := s.run(exitOK, "restore", "monday", "--folder", folder, "--table", "Staff=Restored", "--create", "--blobs", "photos=Restored,restored,staff/photos")
	got := make([]byte, 7)
	if _, err := blobstorage.Container(s.account, "restored").NewBlobClient("staff/photos/ABC/1").DownloadBuffer(t.Context(), got, nil); err != nil || string(got) != "picture" || !strings.Contains(text, "1 blobs written") {
		t.Errorf("%q, %v, %s", got, err, text)
	}
	if _, failed := s.run(exitError, "backup", "tuesday", "Staff", "--folder", folder, "--blobs", "photos"); !strings.Contains(failed, "NAME=TABLE,CONTAINER,PREFIX") {
		t.Error(failed)
	}
}

// TestLeftOut: a row that no table of the service stores is printed by every command that leaves it out, and the exit code says so.
func TestLeftOut(t *testing.T) {
	s := newShell(t)
	s.fill("Orders", 3)
	harness.Damaged(`c1@contoso.com"`, `c1@contoso.com","a-b":1`)(&s.service.ClientOptions)
	folder := t.TempDir()
	for _, args := range [][]string{{"backup", "monday", "Orders", "--folder", folder}, {"copy", "Orders", "Copied", "--create"}} {
		if text, _ := s.run(exitDifference, args...); !strings.Contains(text, "left out: ") || !strings.Contains(text, `"O-000001"`) || !strings.Contains(text, "a-b") {
			t.Error(text)
		}
	}
	if text, _ := s.run(exitOK, "verify", "monday", "--folder", folder); !strings.Contains(text, "1 rows were left out of the backup") {
		t.Error(text)
	}
	s.run(exitOK, "restore", "monday", "--folder", folder, "--table", "Orders=Restored", "--create")
}
