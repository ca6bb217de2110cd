package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"slices"

	"github.com/tablepatterns/tablepatterns/blobstorage"
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
	Ref
	Email   string
	Answers map[string]tables.Value `table:",rest"`
}

func (p *Profile) key() tables.Key {
	return tables.Key{Partition: p.Department, Row: compoundkey.Join("profile", id(p.ID))}
}

func newProfile(e *Employee) *Profile {
	p := &Profile{Ref: e.Ref, Email: e.Email, Answers: map[string]tables.Value{}}
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

// fromHand puts the answers together again. Nothing tells whether the rows are of one version.
func fromHand(rows []*tables.Entity) map[string]tables.Value {
	answers := map[string]tables.Value{}
	for _, row := range rows {
		for _, property := range row.Properties {
			answers[property.Name] = property.Value
		}
	}
	return answers
}

// profiles keeps what has too many properties for an entity.
func profiles(s *scene) func(context.Context) {
	byEmail := intrapartition.NewUnique("email", func(p *Profile) string { return p.Email }, nil)
	wide := widentities.New[Profile](&widentities.Options{FirstRow: []string{"Department", "ID", "Email"}})
	repo := must(patterns.NewRepository(s.store.Table("Profiles"), schemaOf("profile", (*Profile).key), wide, byEmail))
	hand := s.store.Table("ProfilesByHand")
	return func(ctx context.Context) {
		var all []*Profile
		for _, e := range s.some() {
			all = append(all, newProfile(e))
		}
		june := all[len(all)-1]
		x := must(repo.Explain(ctx, driver.ChangeInsert, june))
		s.explain("One of the inserts, by Repository.Explain:", x)
		s.write("profiles inserted", "each in 1 transaction with its copy by email", func() { together(ctx, all, inserting(repo)) })
		tx := hand.NewTransaction()
		for _, row := range june.byHand() {
			tx.Insert(row)
		}
		must(tx.Commit(ctx))

		byHand := hand.Entities().Query().Partition(sales).Rows(compoundkey.Starting("profile", id(jones)))
		ask(s, "the profile of 000223 in Sales",
			get(func() *Profile { return must(repo.Get(ctx, june.key())) }).through(len(x.Rows)/2), // half of them are the copy
			get(func() *Profile {
				return &Profile{Ref: june.Ref, Email: june.Email, Answers: fromHand(collect(byHand.All(ctx)))}
			}).through(answers/inOneRow))

		june.Answers[answer(7)] = tables.String("I would rather not say")
		s.act("one answer merged", "the first row and the one that holds it are written, and their copies", func() {
			try(repo.Merge(ctx, june, answer(7)))
		})
		s.act("read by email", "the copy has it, too", func() {
			try(same(must(byEmail.In(sales).Get(ctx, june.Email)), june))
		})
		stale := must(repo.Get(ctx, june.key()))
		try(repo.Replace(ctx, june))
		s.refused("another answer of it changed meanwhile", tables.ErrConflict, func() { try(repo.Replace(ctx, stale)) })
	}
}

// Badge is an employee with a photo, which is read with her, and a contract, which is read on request.
type Badge struct {
	tables.Meta
	Ref
	Photo    []byte
	Contract largeentities.Stream `table:",omitzero"`
}

// Pieces is the same by hand: as much of a photo as a property holds in each.
type Pieces struct {
	tables.Meta
	Ref
	Photo1, Photo2 []byte
}

// newPicture makes bytes that are others for each employee.
func newPicture(employee, size int) []byte {
	random := rand.NewChaCha8([32]byte{byte(employee), byte(employee >> 8)})
	picture := make([]byte, size)
	_, _ = random.Read(picture) // never an error
	return picture
}

// photos keeps what is too large for an entity beside it, and never one without the other.
func photos(s *scene) func(context.Context) {
	const (
		photoSize    = 90_000   // more than a property holds
		contractSize = 3 << 20  // more than an entity holds
		pieceSize    = 64 << 10 // what a property holds
	)
	container := blobstorage.Open(s.store, "photos")
	photo := largeentities.NewProperty[Badge]("Photo", container, &largeentities.Options{ContentType: "image/jpeg"})
	contract := largeentities.NewStream("Contract", func(b *Badge) *largeentities.Stream { return &b.Contract }, container, nil)
	repo := must(patterns.NewRepository(s.store.Table("Photos"), schemaOf("empid", (*Badge).key), photo, contract))
	pieces := must(patterns.NewRepository(s.store.Table("PhotosPlain"), schemaOf("empid", (*Pieces).key)))
	return func(ctx context.Context) {
		var badges []*Badge
		for _, e := range s.some()[len(s.some())-12:] {
			badges = append(badges, &Badge{Ref: e.Ref, Photo: newPicture(e.ID, photoSize)})
		}
		june := badges[len(badges)-1]
		s.write("12 employees with photos inserted", "for each a blob and a write", func() {
			together(ctx, badges, inserting(repo))
		})
		load(ctx, pieces, []*Pieces{{Ref: june.Ref, Photo1: june.Photo[:pieceSize], Photo2: june.Photo[pieceSize:]}})

		ask(s, "June Jones with her photo",
			get(func() *Badge { return must(repo.Get(ctx, june.key())) }),
			get(func() *Badge {
				p := must(pieces.Get(ctx, june.key()))
				return &Badge{Ref: p.Ref, Photo: append(p.Photo1, p.Photo2...)}
			}))
		s.refused("a photo in one property, without the pattern", tables.ErrTooLarge, func() {
			try(pieces.Insert(ctx, &Pieces{Ref: Ref{sales, len(s.staff) + 1}, Photo1: june.Photo}))
		})

		text := newPicture(0, contractSize)
		june.Contract = largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(text)), nil },
			&largeentities.StreamOptions{ContentType: "application/pdf"})
		s.act("a contract of 3 MiB added", "sent in blocks; her photo stays in its blob", func() { try(repo.Replace(ctx, june)) })
		s.act("all of it read", "as it was written", func() {
			var got bytes.Buffer
			must(june.Contract.Download(ctx, &got, nil))
			s.check(bytes.Equal(got.Bytes(), text), "the contract has other %d bytes", got.Len())
		})
		s.act("an employee deleted", "and the blobs of photo and contract", func() { try(repo.Delete(ctx, june)) })
		s.act("the container swept", "what a process leaves that dies", func() {
			report := must(photo.Sweep(ctx, nil))
			s.check(report.Deleted+report.Failed == 0, "the sweep has deleted %d blobs of this process", report.Deleted)
		})
	}
}
