package largeentities_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

type employee struct {
	tables.Meta
	Department string
	ID         int
	Email      string `table:",omitempty"`
	Note       string
	Photo      []byte
	CV         string               `table:",omitempty"`
	Video      largeentities.Stream `table:",omitzero"`
}

func with(id int) *employee { return &employee{Department: "Sales", ID: id, Note: "first"} }

func keyOf(e *employee) tables.Key {
	return tables.Key{Partition: e.Department, Row: compoundkey.Join("empid", compoundkey.Int(e.ID, 6))}
}

func at(id int) tables.Key { return keyOf(with(id)) }

// threshold is what stays in the entity in these tests.
const threshold = 64

// large is a value that goes to a blob, another one for each letter.
func large(letter string) []byte { return []byte(strings.Repeat(letter, threshold+len(letter)*10)) }

const grace = time.Hour

// world is where the tests' processes work.
type world struct {
	inIndex, outIndex bool
	oldBuild          bool // it does not know outIndex
	options           largeentities.Options
	attempts          int
	logger            *slog.Logger

	table, copies, container string
}

func (w *world) open(t testing.TB, s *storagetest.Service) *world {
	t.Helper()
	w.table, w.copies, w.container = s.TableName(t), s.TableName(t), s.ContainerName(t)
	p := assert.Must[*process](t)(w.start(s))
	_, err := p.blobs.Create(t.Context(), nil)
	for _, err := range []error{err, p.account.Table(w.table).Create(t.Context()), p.account.Table(w.copies).Create(t.Context())} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return w
}

// process is what one process has.
type process struct {
	account          *tables.Account
	repo             *patterns.Repository[employee]
	blobs            *container.Client
	photo, cv, video *largeentities.Property[employee]
	byNote           *intrapartition.Unique[employee, compoundkey.Part]
	byEmail          *interpartition.Unique[employee, string]
}

func (p *process) properties() []*largeentities.Property[employee] {
	return []*largeentities.Property[employee]{p.photo, p.cv, p.video}
}

func (w *world) start(s *storagetest.Service) (*process, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions, Logger: w.logger})
	if err != nil {
		return nil, err
	}
	p := &process{account: account, blobs: blobstorage.Container(account, w.container)}
	options := w.options
	if options.Threshold == 0 {
		options.Threshold = threshold
	}
	p.photo = largeentities.NewProperty[employee]("Photo", p.blobs, &options)
	p.cv = largeentities.NewProperty[employee]("CV", p.blobs, &options)
	p.video = largeentities.NewStream("Video", func(e *employee) *largeentities.Stream { return &e.Video }, p.blobs, &options)
	attached := []patterns.Pattern[employee]{p.photo, p.cv, p.video}
	if w.inIndex {
		p.byNote = intrapartition.NewUnique("note", func(e *employee) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String(e.Note), compoundkey.Int(e.ID, 6))
		}, nil)
		attached = append(attached, p.byNote)
	}
	if w.outIndex {
		p.byEmail = interpartition.NewUnique("email", func(e *employee) string { return e.Email },
			&interpartition.Options[employee]{ByPartition: true, Table: account.Table(w.copies)})
		attached = append(attached, p.byEmail)
	}
	schema := patterns.Schema[employee]{Key: keyOf, Prefix: "empid", MaxAttempts: w.attempts, OtherBuilds: w.oldBuild}
	p.repo, err = patterns.NewRepository(account.Table(w.table), schema, attached...)
	return p, err
}

// sweep sweeps all properties when every blob is old enough.
func (w *world) sweep(ctx context.Context, s *storagetest.Service) error {
	_, err := w.sweepAll(ctx, s)
	return err
}

func (w *world) sweepAll(ctx context.Context, s *storagetest.Service) (all largeentities.SweepReport, err error) {
	p, err := w.start(s)
	if err != nil {
		return all, err
	}
	s.Wait(2 * grace)
	for i, x := range p.properties() {
		r, err := x.Sweep(ctx, nil)
		if err != nil || r.Failed > 0 {
			return all, fmt.Errorf("the sweep of property %d found %+v, %w", i, r, err)
		}
		all.Listed, all.Referenced, all.Deleted = all.Listed+r.Listed, all.Referenced+r.Referenced, all.Deleted+r.Deleted
	}
	return all, nil
}

// pointersIn returns the blobs that the rows of a table point at, with the hash that they must have.
func pointersIn(ctx context.Context, table *tables.Table) (map[string]string, error) {
	rows, err := tables.RowsOf[tables.Entity](table)
	if err != nil {
		return nil, err
	}
	marked, err := harness.Marked(ctx, table)
	if err != nil {
		return nil, err
	}
	found := map[string]string{}
	for row, err := range rows.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		for _, p := range row.Properties {
			if marked[row.Key] {
				break
			}
			text, _ := p.Value.Text()
			if data, ok := p.Value.Bytes(); ok {
				text = string(data)
			}
			if fields := strings.Fields(text); len(fields) == 5 && strings.HasPrefix(fields[0], "tp") {
				found[fields[3]] = fields[2]
			}
		}
	}
	return found, nil
}

// blobsIn returns the blobs of the container, with the hash that they have.
func (w *world) blobsIn(ctx context.Context, p *process) (map[string]string, error) {
	found := map[string]string{}
	for pager := p.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Segment.BlobItems {
			answer, err := p.blobs.NewBlobClient(*item.Name).DownloadStream(ctx, nil)
			if err != nil {
				return nil, err
			}
			var content bytes.Buffer
			_, err = content.ReadFrom(answer.Body)
			answer.Body.Close()
			if err != nil {
				return nil, err
			}
			sum := sha256.Sum256(content.Bytes())
			found[*item.Name] = hex.EncodeToString(sum[:])
		}
	}
	return found, nil
}

// check holds blobs against rows: each row's pointers lead to the right content, and nothing points nowhere. It returns the
// employees as texts.
func (w *world) check(ctx context.Context, s *storagetest.Service) (map[tables.Key]string, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	there, err := w.blobsIn(ctx, p)
	if err != nil {
		return nil, err
	}
	pointed, err := pointersIn(ctx, p.account.Table(w.table))
	if err != nil {
		return nil, err
	}
	outside, err := pointersIn(ctx, p.account.Table(w.copies))
	if err != nil {
		return nil, err
	}
	maps.Copy(pointed, outside)
	if !maps.Equal(there, pointed) {
		return nil, fmt.Errorf("the blobs are\n%s\nand the rows point at\n%s", lines(there), lines(pointed))
	}
	found := map[tables.Key]string{}
	for e, err := range p.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		if found[e.Key()], err = textOf(ctx, e); err != nil {
			return nil, err
		}
	}
	return found, nil
}

func lines(m map[string]string) string {
	var b strings.Builder
	for _, key := range slices.Sorted(maps.Keys(m)) {
		fmt.Fprintf(&b, "\t%s: %s\n", key, m[key])
	}
	return b.String()
}

// textOf tells an employee with her values.
func textOf(ctx context.Context, e *employee) (string, error) {
	video, err := readAll(ctx, e.Video)
	return fmt.Sprintf("%s photo=%s cv=%s video=%s", e.Note, short(e.Photo), short([]byte(e.CV)), short(video)), err
}

func short(data []byte) string {
	if len(data) == 0 {
		return ""
	}
	return fmt.Sprintf("%s%d", data[:1], len(data))
}

func readAll(ctx context.Context, s largeentities.Stream) ([]byte, error) {
	var b bytes.Buffer
	_, err := s.Download(ctx, &b, nil)
	return b.Bytes(), err
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
