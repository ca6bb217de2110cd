package main

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"maps"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

const (
	answers  = 1000 // in a profile: four times as many properties as an entity may have
	inOneRow = 250  // of them, where a profile is spread by hand
)

// Profile is what an employee has answered to as many questions as there are.
type Profile struct {
	tables.Meta
	Department string
	ID         int
	Email      string
	Answers    map[string]tables.Value `table:",rest"`
}

// profileRecord is what two Profiles must have in common to be the same.
type profileRecord struct {
	department, email string
	id, answers       int
	digest            string
}

func (p *Profile) record() profileRecord {
	hash := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(p.Answers)) {
		fmt.Fprintf(hash, "%s %T %[2]v\n", name, p.Answers[name].Any())
	}
	return profileRecord{p.Department, p.Email, p.ID, len(p.Answers), hex.EncodeToString(hash.Sum(nil)[:8])}
}

// newProfile answers all questions. The first answer and the last, by hand in different rows, say of which edition they are.
func newProfile(e *Employee, edition string) *Profile {
	p := &Profile{Department: e.Department, ID: e.ID, Email: e.Email, Answers: map[string]tables.Value{}}
	for n := range answers {
		p.Answers[answer(n)] = tables.Int32(int32((e.ID*31 + n*17) % 100))
		if n%20 == 1 {
			p.Answers[answer(n)] = tables.String(fmt.Sprintf("certified in %d", 1990+(e.ID+n)%35))
		}
	}
	p.Answers[answer(0)], p.Answers[answer(answers-1)] = tables.String(edition), tables.String(edition)
	return p
}

// answer names a property.
func answer(n int) string { return fmt.Sprintf("Q%04d", n) }

// editions are those of the first answer and of the last.
func (p *Profile) editions() (first, last string) {
	first, _ = p.Answers[answer(0)].Text()
	last, _ = p.Answers[answer(answers-1)].Text()
	return first, last
}

func profileKey(department string, n int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("profile", id(n))}
}

// newProfiles is the table with patterns: one entity a profile, which is spread over rows, and its copy by email.
func newProfiles(table *tables.Table) (*patterns.Repository[Profile], *intrapartition.Index[Profile], error) {
	byEmail := intrapartition.NewIndex("email", func(p *Profile) compoundkey.Part { return compoundkey.String(p.Email) }, nil)
	wide := widentities.New[Profile](&widentities.Options{FirstRow: []string{"Department", "ID", "Email"}})
	repo, err := patterns.NewRepository(table, patterns.Schema[Profile]{
		Key:  func(p *Profile) tables.Key { return profileKey(p.Department, p.ID) },
		Rows: compoundkey.Starting("profile"),
	}, wide, byEmail)
	return repo, byEmail, err
}

// byHand is the profile as the guide has it: several entities, profile_000223_01 and so on, of a type that nobody declares.
func (p *Profile) byHand() []*tables.Entity {
	var rows []*tables.Entity
	for i, name := range slices.Sorted(maps.Keys(p.Answers)) {
		if i%inOneRow == 0 {
			rows = append(rows, &tables.Entity{Key: handKey(p.Department, p.ID, len(rows)+1)})
		}
		rows[len(rows)-1].Set(name, p.Answers[name])
	}
	rows[0].Set("Email", tables.String(p.Email))
	return rows
}

func handKey(department string, n, part int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("profile", id(n), compoundkey.Int(part, 2))}
}

// fromHand puts entities together again. Whether they are of one edition, nothing tells.
func fromHand(rows iter.Seq2[*tables.Entity, error]) (*Profile, error) {
	p := &Profile{Answers: map[string]tables.Value{}}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		var part int
		if err := compoundkey.Parse(row.Key.Row, "profile", compoundkey.ToInt(&p.ID, 6), compoundkey.ToInt(&part, 2)); err != nil {
			return nil, err
		}
		p.Department = row.Key.Partition
		for _, property := range row.Properties {
			if property.Name == "Email" {
				p.Email, _ = property.Value.Text()
				continue
			}
			p.Answers[property.Name] = property.Value
		}
	}
	return p, nil
}
