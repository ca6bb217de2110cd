package check_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/eventual"
	"github.com/tablepatterns/tablepatterns/indexentities"
	"github.com/tablepatterns/tablepatterns/internal/chaos/check"
	"github.com/tablepatterns/tablepatterns/interpartition"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
)

// person has an index in the partition, one outside that is unique and one that is not, an outside list, and a photo in a blob.
type person struct {
	patterns.Meta
	Department               string
	ID                       int
	Name, Email, Badge, Team string
	Photo                    []byte
}

func personKey(p *person) patterns.Key {
	return patterns.Key{Partition: p.Department, Row: compoundkey.Join("empid", compoundkey.Int(p.ID, 6))}
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

// world is where the people are.
type world struct {
	service              *storagetest.Service
	repo                 *patterns.Repository[person]
	photo                *largeentities.Property[person]
	people, badges, team *aztables.Client
	photos               *container.Client
	model                *check.Model
}

func newWorld(t testing.TB, n int) *world {
	t.Helper()
	s := storagetest.Simulator(t, nil)
	account, err := patterns.NewAccountFromConnectionString(s.ConnectionString, &patterns.AccountOptions{ClientOptions: s.ClientOptions})
	ok(t, err)
	queue, err := eventual.NewQueue(account, "intents", nil)
	ok(t, err)
	people, badges, teams := account.Table("People"), account.Table("Badges"), account.Table("Teams")
	w := &world{service: s, people: people.Client(), badges: badges.Client(), team: teams.Client(), photos: account.Container("photos")}
	_, err = w.photos.Create(t.Context(), nil)
	ok(t, err, people.Create(t.Context()), badges.Create(t.Context()), teams.Create(t.Context()), queue.Create(t.Context()))
	w.photo = largeentities.NewProperty[person]("Photo", w.photos, &largeentities.Options{Threshold: 16})
	w.repo, err = patterns.NewRepository(people, patterns.Schema[person]{Key: personKey, RowPrefix: "empid", Intents: queue},
		intrapartition.NewIndex("email", func(p *person) compoundkey.Part { return text(p.Email) }),
		intrapartition.NewIndex("name", func(p *person) compoundkey.Part { return text(p.Name) }).Keep("Name", "Email"),
		interpartition.NewIndex("mail", func(p *person) compoundkey.Part { return text(p.Email) }),
		interpartition.NewIndex("badge", func(p *person) compoundkey.Part { return text(p.Badge) }).
			GroupBy(func(*person) string { return interpartition.Organisation }).In(badges).Keep("Name").Unique(),
		indexentities.NewOutside("team", func(p *person) compoundkey.Part { return text(p.Team) }).In(teams), w.photo)
	ok(t, err)
	for i := range n {
		ok(t, w.repo.Insert(t.Context(), personNumber(i)))
	}
	w.model = w.newModel()
	return w
}

// newModel says what a person asks for, in the words of docs/storage-format.md.
func (w *world) newModel() *check.Model {
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
	return &check.Model{
		Table: w.people, RowPrefix: "empid_", Key: rowKey,
		Near: []check.Index{{Name: "email", Key: near("email", "Email")}, {Name: "name", Key: near("name", "Name"), Keep: []string{"Name", "Email"}}},
		Outside: []check.Index{{Name: "mail", Key: outside("mail", "Email", true)},
			{Name: "badge", Table: w.badges, Key: outside("badge", "Badge", false), Keep: []string{"Name"}}},
		Lists: []check.Index{{Name: "team", Table: w.team, Key: outside("team", "Team", true)}},
		Blobs: []check.Blob{{Property: "Photo", Container: w.photos, Prefix: "People/Photo"}},
	}
}

// rowKey is the key that a row's properties stand for.
func rowKey(r check.Row) (check.Key, error) {
	for _, name := range []string{"Department", "Name", "Email", "Badge", "Team"} {
		value, _ := r.Raw(name)
		if _, ok := r.Text(name); value != "" && !ok {
			return check.Key{}, fmt.Errorf("%s is %s", name, value)
		}
	}
	var id int
	value, annotation := r.Raw("ID")
	if _, err := fmt.Sscanf(strings.Trim(value, `"`), "%d", &id); value != "" && err != nil || annotation == "" && strings.HasPrefix(value, `"`) {
		return check.Key{}, errors.New("ID is " + value)
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

// verify lists what Verify finds, and what Sweep would delete.
func (w *world) verify(ctx context.Context) (map[string]bool, error) {
	found := map[string]bool{}
	for d, err := range w.repo.Verify(ctx, &patterns.VerifyOptions{Lag: time.Nanosecond}) {
		if err != nil {
			return nil, err
		}
		found[fmt.Sprintf("%s %s %q %s/%s", d.Kind, d.Pattern, d.Place, d.Entity.Partition, d.Entity.Row)] = true
	}
	w.service.Wait(2 * time.Hour)
	swept, err := w.photo.Sweep(ctx, &largeentities.SweepOptions{DryRun: true})
	if swept.Deleted+swept.Failed+swept.Held > 0 {
		found["spurious photo"] = true
	}
	return found, err
}

func ok(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
