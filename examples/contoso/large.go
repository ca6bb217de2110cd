package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/tables"
	"github.com/tablepatterns/tablepatterns/widentities"
)

const (
	answers  = 1000 // in a profile: four times as many properties as an entity may have
	inOneRow = 250  // of them, where a profile is spread over rows by hand
)

// Profile is what an employee has answered to as many questions as there are.
type Profile struct {
	tables.Meta
	Department string
	ID         int
	Email      string
	Answers    map[string]tables.Value `table:",rest"`
}

func newProfile(e *Employee) *Profile {
	p := &Profile{Department: e.Department, ID: e.ID, Email: e.Email, Answers: map[string]tables.Value{}}
	for n := range answers {
		p.Answers[answer(n)] = tables.String(fmt.Sprintf("certified in %d", 1990+(e.ID+n)%35))
	}
	return p
}

// answer names a property.
func answer(n int) string { return fmt.Sprintf("Q%04d", n) }

// byHand is the profile as the guide has it: several entities, profile_000223_01 and so on.
func (p *Profile) byHand() []*tables.Entity {
	var rows []*tables.Entity
	for i, name := range slices.Sorted(maps.Keys(p.Answers)) {
		if i%inOneRow == 0 {
			rows = append(rows, &tables.Entity{Key: tables.Key{Partition: p.Department,
				Row: compoundkey.Join("profile", id(p.ID), compoundkey.Int(len(rows)+1, 2))}})
		}
		rows[len(rows)-1].Set(name, p.Answers[name])
	}
	return rows
}

// fromHand puts entities together again. Whether they are of one edition, nothing tells.
func fromHand(p *Profile, rows iter.Seq2[*tables.Entity, error]) (*Profile, error) {
	p.Answers = map[string]tables.Value{}
	for row, err := range rows {
		if err != nil {
			return nil, err
		}
		for _, property := range row.Properties {
			p.Answers[property.Name] = property.Value
		}
	}
	return p, nil
}

// profiles keeps what has too many properties for an entity. Guide: "Wide entities pattern".
func profiles() scenario {
	return scenario{
		title: "Profiles of 1,000 answers",
		guide: "Wide entities pattern",
		plain: "rows of 250 answers by hand",
		shows: []show{{"Wide entities", "the profile of 000223 in Sales", "", "1,000 properties with one ETag"}},
		open: func(s *scene) func(context.Context) {
			byEmail := intrapartition.NewIndex("email", func(p *Profile) compoundkey.Part { return compoundkey.String(p.Email) }, nil)
			key := func(p *Profile) tables.Key {
				return tables.Key{Partition: p.Department, Row: compoundkey.Join("profile", id(p.ID))}
			}
			wide := widentities.New[Profile](&widentities.Options{FirstRow: []string{"Department", "ID", "Email"}})
			repo := must(patterns.NewRepository(s.store.Table("Profiles"), patterns.Schema[Profile]{Key: key, Rows: compoundkey.Starting("profile")}, wide, byEmail))
			hand := s.store.Table("ProfilesByHand")
			return func(ctx context.Context) {
				var all []*Profile
				for _, e := range s.some() {
					all = append(all, newProfile(e))
				}
				june := all[len(all)-1]
				x, err := repo.Explain(ctx, driver.ChangeInsert, june)
				s.explain("One of the inserts, by Repository.Explain:", x, err)
				s.write("profiles inserted", "each in 1 transaction with its copy by email", func() error { return together(ctx, all, inserting(repo)) })
				tx := hand.NewTransaction()
				for _, row := range june.byHand() {
					tx.Insert(row)
				}
				must(tx.Commit(ctx))

				byHand := hand.Entities().Query().Partition(sales).Rows(compoundkey.Starting("profile", id(jones)))
				ask(ctx, s, "the profile of 000223 in Sales",
					get(func(ctx context.Context) (*Profile, error) { return repo.Get(ctx, key(june)) }).through(len(x.Rows)/2), // half of them are the copy
					get(func(ctx context.Context) (*Profile, error) {
						return fromHand(&Profile{Department: sales, ID: jones, Email: june.Email}, byHand.All(ctx))
					}).through(answers/inOneRow))

				june.Answers[answer(7)] = tables.String("I would rather not say")
				s.act("one answer merged", "the first row and the one that holds it are written, and their copies", func() error {
					return repo.Merge(ctx, june, answer(7))
				})
				s.act("read by email", "the copy has it, too", func() error {
					got, err := byEmail.Get(ctx, sales, compoundkey.String(june.Email))
					return same(got, june, err)
				})
				stale := must(repo.Get(ctx, key(june)))
				try(repo.Replace(ctx, june))
				s.refused("another answer of it changed meanwhile", tables.ErrConflict, func() error { return repo.Replace(ctx, stale) })
			}
		},
	}
}

// Badge is an employee with a photo, which is read with her, and a contract, which is read by who asks for it.
type Badge struct {
	tables.Meta
	Department string
	ID         int
	Photo      []byte
	Contract   largeentities.Stream `table:",omitzero"`
}

// Pieces is the same by hand: as much of a photo as a property holds in each.
type Pieces struct {
	tables.Meta
	Department     string
	ID             int
	Photo1, Photo2 []byte
}

// newPicture makes bytes that are others for each employee.
func newPicture(employee, size int) []byte {
	random := rand.NewChaCha8([32]byte{byte(employee), byte(employee >> 8)})
	picture := make([]byte, size)
	_, _ = random.Read(picture) // never an error
	return picture
}

// photos keeps what is too large for an entity beside it, and never one without the other. Guide: "Large entities pattern".
func photos() scenario {
	const (
		photoSize    = 90_000   // more than a property holds
		contractSize = 3 << 20  // more than an entity holds
		pieceSize    = 64 << 10 // what a property holds
	)
	return scenario{
		title: "Photos and contracts",
		guide: "Large entities pattern",
		plain: "photos in pieces, within the entity",
		shows: []show{{"Large entities", "June Jones with her photo", "", "no blob without entity, none missing"}},
		open: func(s *scene) func(context.Context) {
			container := s.store.Container("photos")
			photo := largeentities.NewProperty[Badge]("Photo", container, &largeentities.Options{ContentType: "image/jpeg"})
			contract := largeentities.NewStream("Contract", func(b *Badge) *largeentities.Stream { return &b.Contract }, container, nil)
			repo := must(patterns.NewRepository(s.store.Table("Photos"), patterns.Schema[Badge]{
				Key: func(b *Badge) tables.Key { return employeeKey(b.Department, b.ID) }, Rows: compoundkey.Starting("empid"),
			}, photo, contract))
			pieces := must(patterns.NewRepository(s.store.Table("PhotosPlain"), patterns.Schema[Pieces]{
				Key: func(p *Pieces) tables.Key { return employeeKey(p.Department, p.ID) }, Rows: compoundkey.Starting("empid"),
			}))
			return func(ctx context.Context) {
				var badges []*Badge
				for _, e := range s.some()[len(s.some())-12:] {
					badges = append(badges, &Badge{Department: sales, ID: e.ID, Photo: newPicture(e.ID, photoSize)})
				}
				june := badges[len(badges)-1]
				s.write("12 employees with photos inserted", "for each a blob, a transaction, 2 of the queue, and 1 to read again", func() error {
					return together(ctx, badges, inserting(repo))
				})
				try(s.drainIntents(ctx))
				importing(ctx, pieces, []*Pieces{{Department: sales, ID: jones, Photo1: june.Photo[:pieceSize], Photo2: june.Photo[pieceSize:]}})

				ask(ctx, s, "June Jones with her photo",
					get(func(ctx context.Context) (*Badge, error) { return repo.Get(ctx, employeeKey(sales, jones)) }),
					get(func(ctx context.Context) (*Badge, error) {
						p, err := pieces.Get(ctx, employeeKey(sales, jones))
						if err != nil {
							return nil, err
						}
						return &Badge{Department: p.Department, ID: p.ID, Photo: append(p.Photo1, p.Photo2...)}, nil
					}))
				s.refused("a photo in one property, without the pattern", tables.ErrTooLarge, func() error {
					return pieces.Insert(ctx, &Pieces{Department: sales, ID: len(s.staff) + 1, Photo1: june.Photo})
				})

				text := newPicture(0, contractSize)
				june.Contract = largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
					&largeentities.StreamOptions{ContentType: "application/pdf"})
				s.act("a contract of 3 MiB added", "sent in blocks; her photo stays in its blob", func() error { return repo.Replace(ctx, june) })
				s.act("all of it read", "as it was written", func() error {
					var got bytes.Buffer
					_, err := june.Contract.Download(ctx, &got, nil)
					if err == nil && !bytes.Equal(got.Bytes(), text) {
						err = fmt.Errorf("the contract has other %d bytes", got.Len())
					}
					return err
				})
				s.act("an employee deleted", "and the blobs of photo and contract", func() error { return repo.Delete(ctx, june) })
				try(s.drainIntents(ctx))
				s.act("the container swept", "no blob is without its entity", func() error {
					report, err := photo.Sweep(ctx, nil)
					if err == nil && (report.Listed != len(badges)-1 || report.Deleted > 0) {
						err = fmt.Errorf("of %d blobs the sweep has deleted %d", report.Listed, report.Deleted)
					}
					return err
				})
			}
		},
	}
}
