package backup_test

import (
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/tally"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// TestUnreadableRows: a row that cannot be copied as it is, is told and left out, and all others are copied, backed up, compared and restored.
func TestUnreadableRows(t *testing.T) {
	from := newTable(t, harness.AccountWith(t, harness.Damaged(`"Total":5555`, `"Total":{"x":5}`, `cut here`, `\ud83d`)))
	for i := range 12 {
		e := harness.Row("p", fmt.Sprintf("%02d", i), tables.Property{Name: "Total", Value: tables.Int32(int32(i))}, tables.Property{Name: "Name", Value: tables.String("Jones")})
		switch i {
		case 5:
			e.Set("Total", tables.Int32(5555))
		case 7:
			e.Set("Name", tables.String("cut here"))
		}
		assert.Check(t, from.Entities().Insert(t.Context(), e))
	}
	var found []string
	options := &backup.Options{Found: func(d backup.Difference) error {
		found = append(found, fmt.Sprint(d.Kind, " ", d.Key.Row, " ", d.Err != nil))
		return nil
	}}
	told := func(want ...string) {
		t.Helper()
		slices.Sort(found)
		assert.Slices(t, found, want, "told")
		found = nil
	}
	to := newTable(t, harness.Account(t))
	result, err := backup.Copy(t.Context(), from, to, options)
	if err != nil || result.Read != 10 || result.Written != 10 || result.Failed != 2 || result.Findings != 2 {
		t.Errorf("Copy: %+v, %v", result, err)
	}
	told("left out 05 true", "left out 07 true")
	report, err := backup.Compare(t.Context(), from, to, options)
	if err != nil || report.Findings != 2 {
		t.Errorf("Compare: %+v, %v", report, err)
	}
	told("left out 05 true", "left out 07 true")
	assert.Check(t, assert.Err(backup.Compare(t.Context(), to, from, options)))
	told("left out 05 true", "left out 07 true")
	v := opened(t)
	saved, err := v.Backup(t.Context(), "monday", []*tables.Table{from}, options)
	if err != nil || saved.Failed != 2 || saved.Read != 10 {
		t.Errorf("Backup: %+v, %v", saved, err)
	}
	told("left out 05 true", "left out 07 true")
	restored := newTable(t, harness.Account(t))
	assert.Check(t, assert.Err(v.Restore(t.Context(), "monday", []backup.Target{{Name: from.Name(), To: restored}}, options)))
	told()
	if report, err := backup.Compare(t.Context(), to, restored, options); err != nil || report.Findings != 0 || report.Read != 10 {
		t.Errorf("%+v, %v", report, err)
	}
}

// TestRowsOfEmulators: a row that an emulator stores and Azure does not is told and left out by Backup and Copy, and all others arrive.
func TestRowsOfEmulators(t *testing.T) {
	var log bytes.Buffer
	options := &tables.AccountOptions{Logger: slog.New(slog.NewTextHandler(&log, nil)), LogKeys: true, ClientOptions: harness.ClientOptions(t,
		harness.Damaged("2001-02-03T04:05:06", "0001-01-01T00:00:00", `"Dash"`, `"da-sh"`, `"Many":1`, manyProperties(260), `"Large":1`, largeRow(), `"5 key"`, `"5 k/y"`))}
	from := newTable(t, assert.Must[*tables.Account](t)(tables.NewAccountFromConnectionString(storagetest.Open(t).ConnectionString, options)))
	when := assert.Must[tables.Value](t)(tables.DateTime(time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)))
	for _, e := range []*tables.Entity{
		harness.Row("p", "0 good", tables.Property{Name: "Total", Value: tables.Int32(1)}),
		harness.Row("p", "1 year", tables.Property{Name: "When", Value: when}),
		harness.Row("p", "2 name", tables.Property{Name: "Dash", Value: tables.Int32(1)}),
		harness.Row("p", "3 many", tables.Property{Name: "Many", Value: tables.Int32(1)}),
		harness.Row("p", "4 large", tables.Property{Name: "Large", Value: tables.Int32(1)}),
		harness.Row("p", "5 key", tables.Property{Name: "Total", Value: tables.Int32(1)}),
		harness.Row("p", "6 good", tables.Property{Name: "Total", Value: tables.Int32(1)}),
	} {
		assert.Check(t, from.Entities().Insert(t.Context(), e))
	}
	want := []string{"1 year", "2 name", "3 many", "4 large", "5 k/y"}
	var told []string
	found := backup.Options{Found: func(d backup.Difference) error {
		if d.Kind == backup.LeftOut && d.Table == from.Name() && d.Err != nil {
			told = append(told, d.Key.Row)
		}
		return nil
	}}
	check := func(job string) {
		t.Helper()
		if slices.Sort(told); !slices.Equal(told, want) {
			t.Errorf("%s told of %q", job, told)
		}
		for _, key := range want {
			if !strings.Contains(log.String(), key) {
				t.Errorf("%s has not logged %s: %s", job, key, &log)
			}
		}
		told = nil
		log.Reset()
	}
	v := opened(t)
	if report, err := v.Backup(t.Context(), "monday", []*tables.Table{from}, &found); err != nil || report.Failed != int64(len(want)) || report.Read != 2 {
		t.Error(report, err)
	}
	check("Backup")
	if m := assert.Must[*backup.Manifest](t)(v.Manifest(t.Context(), "monday")); m.Tables[0].LeftOut != int64(len(want)) || len(m.Tables[0].LeftOutKeys) != len(want) {
		t.Errorf("%+v", m.Tables)
	}
	if report, err := v.Verify(t.Context(), "monday", &found); err != nil || report.Failed != int64(len(want)) || report.Findings != 0 {
		t.Error(report, err)
	}
	restored, copied := newTable(t, harness.Account(t)), newTable(t, harness.Account(t))
	if result, err := v.Restore(t.Context(), "monday", []backup.Target{{Name: from.Name(), To: restored}}, nil); err != nil || result.Written != 2 || result.Failed != int64(len(want)) {
		t.Error(result, err)
	}
	if result, err := backup.Copy(t.Context(), from, copied, &found); err != nil || result.Written != 2 || result.Failed != int64(len(want)) {
		t.Error(result, err)
	}
	check("Copy")
	wantSame(t, restored, copied, 2)
}

// TestRefusedRow: a row that only the destination's service refuses is told and left out, and the rest of its transaction is written.
func TestRefusedRow(t *testing.T) {
	_, v, from := smallBackup(t, 30)
	refuse := func(o *azcore.ClientOptions) {
		inner := o.Transport
		o.Transport = harness.Transport(func(req *http.Request) (*http.Response, error) {
			if req.Body == nil || req.Method == http.MethodGet {
				return inner.Do(req)
			}
			body := assert.Must[[]byte](t)(io.ReadAll(req.Body))
			req.Body = io.NopCloser(bytes.NewReader(body))
			for i, operation := range bytes.Split(body, []byte("\r\nPOST "))[1:] {
				if bytes.Contains(operation, []byte(`"RowKey":"000004"`)) || bytes.Contains(operation, []byte(`"RowKey":"000008"`)) {
					answer := fmt.Sprintf("--a\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n"+
						"HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\n\r\n"+
						`{"odata.error":{"code":"PropertyNameInvalid","message":{"lang":"en-US","value":"%d:The property name is invalid."}}}`+"\r\n--b--\r\n--a--\r\n", i)
					return harness.Reply(req, http.StatusAccepted, answer, "Content-Type", "multipart/mixed; boundary=a"), nil
				}
			}
			return inner.Do(req)
		})
	}
	account := harness.AccountWith(t, refuse)
	for name, job := range map[string]func(to *tables.Table, o *backup.Options) (backup.RestoreReport, error){
		"Copy": func(to *tables.Table, o *backup.Options) (backup.RestoreReport, error) {
			return tally.Of[backup.RestoreReport](backup.Copy(t.Context(), from, to, o))
		},
		"Restore": func(to *tables.Table, o *backup.Options) (backup.RestoreReport, error) {
			return v.Restore(t.Context(), "all", []backup.Target{{Name: from.Name(), To: to}}, o)
		},
	} {
		var told []string
		result, err := job(newTable(t, account), &backup.Options{Found: func(d backup.Difference) error {
			told = append(told, fmt.Sprint(d.Kind, " ", d.Key.Row))
			return nil
		}})
		if slices.Sort(told); err != nil || result.Written != 28 || result.Failed != 2 || !slices.Equal(told, []string{"left out 000004", "left out 000008"}) {
			t.Errorf("%s: %+v, %q, %v", name, result, told, err)
		}
	}
}
