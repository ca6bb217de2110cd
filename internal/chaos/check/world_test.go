package check_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/assert"
	"github.com/tablepatterns/tablepatterns/internal/chaos/check"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// person has an index in the partition, two outside, an outside list, and a photo in a blob.
type person struct {
	tables.Meta
	Department               string
	ID                       int
	Name, Email, Badge, Team string
	Photo                    []byte
	// Life is drawn at the insert, and Version counts the changes since.
	Life    string
	Version int
}

func personKey(p *person) tables.Key {
	return tables.Key{Partition: p.Department, Row: compoundkey.Join("empid", compoundkey.Int(p.ID, 6))}
}

func personNumber(n int) *person {
	return &person{Department: fmt.Sprint("D", n%2), ID: n, Name: fmt.Sprint("name", n), Email: fmt.Sprint("mail", n), Badge: fmt.Sprint("B", n),
		Team: fmt.Sprint("team", n%3), Photo: []byte(strings.Repeat(string(rune('a'+n)), 40))}
}

func text(s string) compoundkey.Part {
	if s == "" {
		return compoundkey.Part{}
	}
	return compoundkey.String(s)
}

// places are the names of what a world is stored in.
type places struct{ People, Badges, Teams, Photos string }

// world is where the people are.
type world struct {
	account              *tables.Account
	repo                 *patterns.Repository[person]
	photo                *largeentities.Property[person]
	people, badges, team *aztables.Client
	photos               *container.Client
	mail                 *interpartition.Unique[person, compoundkey.Part]
	model                *check.Model
	wait                 func(time.Duration)
}

// newWorld is one on the simulator, with some people.
func newWorld(t testing.TB, people int) *world {
	t.Helper()
	w, err := openWorld(storagetest.Simulator(t, nil), places{"People", "Badges", "Teams", "photos"})
	ok(t, err, w.create(t.Context()))
	for i := range people {
		ok(t, w.repo.Insert(t.Context(), personNumber(i)))
	}
	return w
}

// openWorld makes no request.
func openWorld(s *storagetest.Service, in places) (*world, error) {
	account, err := tables.NewAccountFromConnectionString(s.ConnectionString, &tables.AccountOptions{ClientOptions: s.ClientOptions, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return nil, err
	}
	people, badges, teams := account.Table(in.People), account.Table(in.Badges), account.Table(in.Teams)
	w := &world{account: account, people: people.Client(), badges: badges.Client(), team: teams.Client(), photos: blobstorage.Container(account, in.Photos), wait: s.Wait}
	w.photo = largeentities.NewProperty[person]("Photo", w.photos, &largeentities.Options{Threshold: 16, Deadline: chaosDeadline})
	w.mail = interpartition.NewUnique("mail", func(p *person) compoundkey.Part { return text(p.Email) }, &interpartition.Options[person]{ByPartition: true})
	w.repo, err = patterns.NewRepository(people, patterns.Schema[person]{Key: personKey, Prefix: "empid"},
		intrapartition.NewUnique("email", func(p *person) compoundkey.Part { return text(p.Email) }, nil),
		intrapartition.NewUnique("name", func(p *person) compoundkey.Part { return text(p.Name) }, &intrapartition.Options{Project: []string{"Name", "Email"}}),
		w.mail,
		interpartition.NewUnique("badge", func(p *person) compoundkey.Part { return text(p.Badge) }, &interpartition.Options[person]{
			Table:   badges,
			Project: []string{"Name"},
		}),
		indexentities.NewInTable("team", func(p *person) compoundkey.Part { return text(p.Team) }, teams, &indexentities.Options[person]{ByPartition: true}), w.photo)
	w.model = w.newModel(in.People)
	return w, err
}

// create creates what the people are stored in.
func (w *world) create(ctx context.Context) error {
	_, err := w.photos.Create(ctx, nil)
	for _, table := range []*aztables.Client{w.people, w.badges, w.team} {
		_, failed := table.CreateTable(ctx, nil)
		err = errors.Join(err, failed)
	}
	return err
}

// newModel says what a person asks for, in the words of docs/reference/storage-format.md.
func (w *world) newModel(people string) *check.Model {
	near := func(name, property string) func(check.Row) (check.Key, bool) {
		return func(r check.Row) (check.Key, bool) {
			value, _ := r.Text(property)
			return check.Key{Partition: r.Key.Partition, Row: name + "_" + value}, value != ""
		}
	}
	outside := func(name, property string, grouped bool) func(check.Row) (check.Key, bool) {
		return func(r check.Row) (check.Key, bool) {
			value, _ := r.Text(property)
			if grouped {
				return check.Key{Partition: name + "_" + r.Key.Partition, Row: value}, value != ""
			}
			return check.Key{Partition: name, Row: value}, value != ""
		}
	}
	listed := func(r check.Row) (check.Key, bool) {
		value, _ := r.Text("Team")
		return check.Key{Partition: "team_" + r.Key.Partition, Row: value + "!_" + r.Key.Partition + "!_" + strings.ReplaceAll(r.Key.Row, "_", "^1")}, value != ""
	}
	return &check.Model{
		Table: w.people, RowPrefix: "empid_", Key: rowKey,
		Near: []check.Index{{Name: "email", Key: near("email", "Email")}, {Name: "name", Key: near("name", "Name"), Keep: []string{"Name", "Email"}}},
		Outside: []check.Index{{Name: "mail", Key: outside("mail", "Email", true)},
			{Name: "badge", Table: w.badges, Key: outside("badge", "Badge", false), Keep: []string{"Name"}},
			{Name: "team", Table: w.team, Key: listed, Keep: []string{}}},
		Blobs: []check.Blob{{Property: "Photo", Container: w.photos, Prefix: people + "/Photo"}},
	}
}

// rowKey is the key that a row's properties stand for.
func rowKey(r check.Row) (check.Key, error) {
	for _, name := range []string{"Department", "Name", "Email", "Badge", "Team", "Life"} {
		value, _ := r.Raw(name)
		if _, ok := r.Text(name); value != "" && !ok {
			return check.Key{}, fmt.Errorf("%s is %s", name, value)
		}
	}
	number := func(name string) (n int, err error) {
		value, annotation := r.Raw(name)
		if _, err := fmt.Sscanf(strings.Trim(value, `"`), "%d", &n); value != "" && err != nil || annotation == "" && strings.HasPrefix(value, `"`) {
			return 0, fmt.Errorf("%s is %s", name, value)
		}
		return n, nil
	}
	id, err := number("ID")
	if _, wrong := number("Version"); err != nil || wrong != nil {
		return check.Key{}, errors.Join(err, wrong)
	}
	department, _ := r.Text("Department")
	return check.Key{Partition: department, Row: fmt.Sprintf("empid_%06d", id)}, nil
}

// check lists what the checker finds, in the form of verify.
func (w *world) check(ctx context.Context) (map[string]bool, error) {
	findings, err := w.model.Check(ctx)
	found := map[string]bool{}
	for _, f := range findings {
		switch {
		case f.Name == "Photo" && f.Kind == check.Spurious:
			found["spurious photo"] = true
		case f.Name == "Photo": // to Verify, the entity cannot be read then
			found[fmt.Sprintf("%s  %q %s/%s", check.Unreadable, "", f.Entity.Partition, f.Entity.Row)] = true
		default:
			found[fmt.Sprintf("%s %s %q %s/%s", f.Kind, f.Name, f.Place, f.Entity.Partition, f.Entity.Row)] = true
		}
	}
	return found, err
}

// sweep deletes the blobs that nobody points at and that are old enough.
func (w *world) sweep(ctx context.Context) error {
	_, err := w.photo.Sweep(ctx, &largeentities.SweepOptions{Grace: chaosGrace})
	return err
}

// verify lists what Verify finds, and what Sweep would delete.
func (w *world) verify(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	all, err := harness.Findings(ctx, w.repo.Verify, &patterns.JobOptions{Lag: time.Nanosecond})
	if err != nil {
		return nil, err
	}
	for _, d := range all {
		found[fmt.Sprintf("%s %s %q %s/%s", d.Kind, d.Pattern, d.Location, d.Entity.Partition, d.Entity.Row)] = true
	}
	w.wait(2 * time.Hour)
	swept, err := w.photo.Sweep(ctx, &largeentities.SweepOptions{DryRun: true})
	if swept.Deleted+swept.Failed > 0 {
		found["spurious photo"] = true
	}
	return found, err
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	assert.Check(t, errors.Join(errs...))
}
