package backup_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/tables"
)

// smallBackup makes a backup of some chunks.
func smallBackup(t *testing.T, n int) (folder string, v *backup.Vault, table *tables.Table) {
	t.Helper()
	table = newTable(t, harness.Account(t))
	fill(t, table, n)
	folder = t.TempDir()
	v = assert.Must[*backup.Vault](t)(backup.OpenFolder(folder))
	t.Cleanup(func() { assert.Check(t, v.Close()) })
	assert.Check(t, assert.Err(v.Backup(t.Context(), "all", []*tables.Table{table}, small)))
	return folder, v, table
}

// TestFlippedByte: a changed byte at any position of any file, a cut file and a missing one are found and named by Verify, Restore and
// Compare, and a restore writes no row of the damaged file.
func TestFlippedByte(t *testing.T) {
	folder, v, table := smallBackup(t, 10)
	to := newTable(t, harness.Account(t))
	positions := 0
	for name, content := range files(t, folder) {
		path := filepath.Join(folder, filepath.FromSlash(name))
		check := func(what string, damaged []byte) {
			assert.Check(t, os.Remove(path))
			if damaged != nil {
				assert.Check(t, os.WriteFile(path, damaged, 0o600))
			}
			var found []backup.Difference
			_, err := v.Verify(t.Context(), "all", &backup.Options{Found: func(d backup.Difference) error {
				found = append(found, d)
				return nil
			}})
			want := tables.ErrGarbled
			if name == "all.manifest" && damaged == nil {
				want = tables.ErrNotFound
			} else if name != "all.manifest" && (len(found) != 1 || found[0].Kind != backup.Damaged || found[0].Object != name || found[0].Table != table.Name()) {
				t.Fatalf("%s of %s: found %v", what, name, found)
			}
			if !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
				t.Fatalf("%s of %s: %v", what, name, err)
			}
		}
		for i := range content {
			check(fmt.Sprint("byte ", i), slices.Concat(content[:i], []byte{content[i] ^ 1<<(i%8)}, content[i+1:]))
			positions++
		}
		check("end", content[:len(content)-1])
		check("more", append(slices.Clone(content), 0))
		check("nothing", []byte{})
		check("no file", nil)
		assert.ErrorContains(assert.Fatal(t), assert.Err(v.Restore(t.Context(), "all", []backup.Target{{Name: table.Name(), To: to}}, nil)), name)
		assert.ErrorContains(assert.Fatal(t), assert.Err(v.Compare(t.Context(), "all", table.Name(), table, nil)), name)
		assert.Check(t, os.WriteFile(path, content, 0o600))
	}
	if positions < 1000 {
		t.Errorf("%d positions", positions)
	}
	assert.Check(t, assert.Err(v.Verify(t.Context(), "all", nil)))
	t.Logf("%d positions", positions)
}

// object is a part of a manifest.
type object = map[string]any

// forge writes a manifest, with its right checksum, after a change of its lines.
func forge(t *testing.T, folder string, change func(header object, entries []object) []object) {
	t.Helper()
	path := filepath.Join(folder, "all.manifest")
	content := assert.Must[[]byte](t)(os.ReadFile(path))
	lines := bytes.Split(bytes.TrimSpace(content), []byte("\n"))[1:]
	all := make([]object, len(lines))
	for i := range lines {
		assert.Check(t, json.Unmarshal(lines[i], &all[i]))
	}
	var text bytes.Buffer
	for _, line := range change(all[0], all[1:]) {
		assert.Check(t, json.NewEncoder(&text).Encode(line))
	}
	assert.Check(t, os.WriteFile(path, slices.Concat([]byte("tablepatterns backup 1 "+sumOf(text.Bytes())+"\n"), text.Bytes()), 0o600))
}

func sumOf(content []byte) string {
	s := sha256.Sum256(content)
	return hex.EncodeToString(s[:])
}

// addChunk stores a chunk with lines, and returns what an entry says of it.
func addChunk(t *testing.T, folder string, lines []byte, options ...zstd.EOption) object {
	t.Helper()
	e := assert.Must[*zstd.Encoder](t)(zstd.NewWriter(nil, options...))
	stored := e.EncodeAll(lines, nil)
	name := sumOf(stored)
	assert.Check(t, os.MkdirAll(filepath.Join(folder, "chunks", name[:2]), 0o700), os.WriteFile(filepath.Join(folder, "chunks", name[:2], name), stored, 0o600))
	return object{"i": 0, "k": object{"f": object{}}, "n": 1, "b": len(lines), "h": sumOf(lines), "s": len(stored), "c": name}
}

// TestHostile: a forged backup, with right checksums, makes nothing be read or written elsewhere and takes no more memory than allowed.
func TestHostile(t *testing.T) {
	line := func(partition, row, rest string) []byte {
		return []byte(`{"PartitionKey":"` + partition + `","RowKey":"` + row + `"` + rest + "}\n")
	}
	with := func(lines []byte, more object, options ...zstd.EOption) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			e := addChunk(t, folder, lines, options...)
			for k, v := range more {
				e[k] = v
			}
			forge(t, folder, func(h object, _ []object) []object {
				h["entries"] = 1
				return []object{h, e}
			})
		}
	}
	withBlob := func(b object) func(*testing.T, string) {
		return func(t *testing.T, folder string) {
			forge(t, folder, func(h object, entries []object) []object {
				h["blobs"] = []string{"photos"}
				return append(append([]object{h}, entries...), b)
			})
		}
	}
	for name, damage := range map[string]func(t *testing.T, folder string){
		"a path for a chunk": with(line("a", "b", ""), object{"c": "../../../../etc/passwd"}),
		"no checksum":        with(line("a", "b", ""), object{"c": "", "h": ""}),
		"a bomb":             with(bytes.Repeat([]byte{' '}, 64<<20), object{"b": 1000}),
		"a large bomb":       with(bytes.Repeat([]byte{' '}, 64<<20), nil),
		"a large window":     with(bytes.Repeat(line("a", "b", ""), 10), object{"n": 10}, zstd.WithWindowSize(256<<20)),
		"other lines":        with(line("a", "b", ""), object{"h": sumOf(nil)}),
		"negative":           with(line("a", "b", ""), object{"n": -1}),
		"another table":      with(line("a", "b", ""), object{"i": 7}),
		"more rows":          with(line("a", "b", ""), object{"n": 2}),
		"another range":      with(line("z", "b", ""), object{"k": object{"f": object{}, "t": object{"p": "b"}}}),
		"no order":           with(slices.Concat(line("b", "b", ""), line("a", "b", "")), object{"n": 2}),
		"twice":              with(slices.Concat(line("a", "b", ""), line("a", "b", "")), object{"n": 2}),
		"no JSON":            with([]byte("abc"), nil),
		"no zstd": func(t *testing.T, folder string) {
			e := addChunk(t, folder, line("a", "b", ""))
			content := []byte("not compressed")
			name := sumOf(content)
			assert.Check(t, os.MkdirAll(filepath.Join(folder, "chunks", name[:2]), 0o700), os.WriteFile(filepath.Join(folder, "chunks", name[:2], name), content, 0o600))
			e["c"], e["s"] = name, len(content)
			forge(t, folder, func(h object, _ []object) []object {
				h["entries"] = 1
				return []object{h, e}
			})
		},
		"overlapping ranges": func(t *testing.T, folder string) {
			forge(t, folder, func(h object, entries []object) []object {
				h["entries"] = 2
				return []object{h, entries[0], entries[0]}
			})
		},
		"a missing entry": func(t *testing.T, folder string) {
			forge(t, folder, func(h object, entries []object) []object { return append([]object{h}, entries[1:]...) })
		},
		"a path for a blob":    withBlob(object{"i": 0, "k": "../x"}),
		"a blob of no set":     withBlob(object{"i": 1, "k": "x"}),
		"a header in metadata": withBlob(object{"i": 0, "k": "x", "m": object{"tpkey": "a\r\nX-Ms-Lease-Id: 1"}}),
		"a large part":         withBlob(object{"i": 0, "k": "x", "p": []object{{"b": 1 << 30, "s": 1, "h": sumOf(nil), "c": sumOf(nil)}}}),
		"many objects":         withBlob(object{"i": 0, "k": "x", "p": make([]object, 200_000)}),
		"a long line":          withBlob(object{"i": 0, "k": strings.Repeat("x", 9<<20)}),
		"a name with an escape": func(t *testing.T, folder string) {
			forge(t, folder, func(h object, entries []object) []object {
				h["tables"] = append(h["tables"].([]any), "a\x1b[2J")
				return append([]object{h}, entries...)
			})
		},
		"another version": func(t *testing.T, folder string) {
			forge(t, folder, func(h object, entries []object) []object {
				h["v"] = 2
				return append([]object{h}, entries...)
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			folder, v, table := smallBackup(t, 10)
			damage(t, folder)
			to := newTable(t, harness.Account(t))
			result, err := v.Restore(t.Context(), "all", []backup.Target{{Name: table.Name(), To: to}}, nil)
			harness.WantKind(t, err, tables.ErrGarbled)
			if result.Written != 0 || strings.Contains(err.Error(), "passwd") {
				t.Error(result, err)
			}
			assert.ErrorIs(t, assert.Err(v.Verify(t.Context(), "all", nil)), tables.ErrGarbled)
		})
	}
}

// TestForeignRows: of a chunk that has the checksums of its manifest, and rows that no table stores, all others are restored and compared,
// and Verify, Restore and Compare name those rows.
func TestForeignRows(t *testing.T) {
	foreign := map[string]string{
		"a year before 1601": `"D":"0001-01-01T00:00:00Z","D@odata.type":"Edm.DateTime"`,
		"many properties":    manyProperties(260),
		"a hyphen in a name": `"a-b":1`,
		"over 1 MiB":         largeRow(),
		"a large value":      `"P":"` + strings.Repeat("x", 40_000) + `"`,
		"an object":          `"P":{"x":1}`,
		"half a character":   `"P":"\ud83d"`,
		"a key/":             `"P":1`,
	}
	var lines []byte
	keys := slices.Sorted(maps.Keys(foreign))
	for i, key := range keys {
		lines = fmt.Appendf(lines, `{"PartitionKey":"p","RowKey":"%d good","P":1}`+"\n"+`{"PartitionKey":"p","RowKey":"%d %s",%s}`+"\n", 2*i+10, 2*i+11, key, foreign[key])
	}
	folder, v, table := smallBackup(t, 10)
	e := addChunk(t, folder, lines)
	e["n"] = 2 * len(foreign)
	forge(t, folder, func(h object, _ []object) []object {
		h["entries"] = 1
		return []object{h, e}
	})
	to := newTable(t, harness.Account(t))
	var told []string
	options := backup.Options{Found: func(d backup.Difference) error {
		if d.Kind == backup.LeftOut && d.Err != nil {
			told = append(told, d.Key.Row[3:])
		}
		return nil
	}}
	wantTold := func(what string, want []string) {
		t.Helper()
		if slices.Sort(told); !slices.Equal(told, want) {
			t.Errorf("%s told of %q, want %q", what, told, want)
		}
		told = nil
	}
	if report, err := v.Verify(t.Context(), "all", &options); err != nil || report.Failed != int64(len(keys)) || report.Read != int64(len(keys)) {
		t.Error(report, err)
	}
	wantTold("Verify", keys)
	for _, written := range []int64{int64(len(keys)), 0} {
		result, err := v.Restore(t.Context(), "all", []backup.Target{{Name: table.Name(), To: to}}, &options)
		if err != nil || result.Written != written || result.Failed != int64(len(keys)) || result.Read != int64(len(keys)) {
			t.Errorf("%+v, %v", result, err)
		}
		wantTold("Restore", keys)
	}
	assert.Equal(t, harness.CountRows(t, to), len(keys), "rows restored")
	report, err := v.Compare(t.Context(), "all", table.Name(), to, &options)
	if err != nil || report.Findings != int64(len(keys)) { // those that can be read are missing
		t.Error(report, err)
	}
	wantTold("Compare", []string{"an object", "half a character"})
}

// manyProperties are the members of a row of n properties.
func manyProperties(n int) string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf(`"P%d":%d`, i, i))
	}
	return strings.Join(all, ",")
}

// largeRow are the members of a row of more than 1 MiB, of which no value is too large.
func largeRow() string {
	var all []string
	for i := range 20 {
		all = append(all, fmt.Sprintf(`"P%d":"%s"`, i, strings.Repeat("x", 30_000)))
	}
	return strings.Join(all, ",")
}

// TestNothingOutside: neither a symbolic link nor a name leads out of the folder.
func TestNothingOutside(t *testing.T) {
	folder, v, table := smallBackup(t, 10)
	outside := t.TempDir()
	secret := filepath.Join(outside, "x.manifest")
	assert.Check(t, os.WriteFile(secret, assert.Must[[]byte](t)(os.ReadFile(filepath.Join(folder, "all.manifest"))), 0o600))
	assert.Check(t, os.Symlink(secret, filepath.Join(folder, "link.manifest")), os.Symlink(outside, filepath.Join(folder, "led.journal")))
	if _, err := v.Manifest(t.Context(), "link"); err == nil || errors.Is(err, tables.ErrNotFound) {
		t.Error(err)
	}
	assert.Error(t, assert.Err(v.Backup(t.Context(), "led", []*tables.Table{table}, nil)), "a journal was written outside")
	assert.Len(t, assert.Must[[]os.DirEntry](t)(os.ReadDir(outside)), 1)
	for _, name := range []string{"", ".", "..", "../all", "a/b", "a.b", "/etc", "chunks", `a\b`, "a\x00", strings.Repeat("x", 65), "-a", "ü"} {
		harness.WantKind(t, assert.Err(v.Backup(t.Context(), name, []*tables.Table{table}, nil)), tables.ErrInvalid)
		harness.WantKind(t, assert.Err(v.Manifest(t.Context(), name)), tables.ErrInvalid)
	}
}
