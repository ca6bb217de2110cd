package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/largeentities"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	photographed = 12       // employees with a photo, June Jones the last of them
	photoSize    = 90_000   // more than a property holds
	contractSize = 3 << 20  // more than an entity holds
	pieceSize    = 64 << 10 // what a property holds
)

// photos keeps what is too large for an entity beside it, and never one without the other.
func photos() scenario {
	return scenario{
		title: "Photos and contracts",
		guide: "Large entities pattern",
		shows: []show{
			{"Large entities", "June Jones with her photo", "", "no blob without entity, none missing"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			a, err := c.openAlbum(ctx)
			if err != nil {
				return err
			}
			s.Plain = "photos in pieces, within the entity"
			return steps(ctx, s, a.load, a.askForPhoto, a.readContract, a.replacePhoto, a.refusePlain, a.dismiss, a.check)
		},
	}
}

// Badge is an employee with a photo, which is read with her, and a contract, which is read by who asks for it.
type Badge struct {
	tables.Meta
	Department string
	ID         int
	Email      string
	Photo      []byte
	Contract   largeentities.Stream `table:",omitzero"`
}

// badgeRecord is what two Badges must have in common to be the same.
type badgeRecord struct {
	department, email string
	id                int
	photo             [sha256.Size]byte
}

func (b *Badge) record() badgeRecord {
	return badgeRecord{b.Department, b.Email, b.ID, sha256.Sum256(b.Photo)}
}

// Pieces is the same by hand: as much of a photo as a property holds in each.
type Pieces struct {
	tables.Meta
	Department             string
	ID                     int
	Email                  string
	Photo1, Photo2, Photo3 []byte
}

// newPicture makes bytes that are others for each employee and edition.
func newPicture(employee, edition, size int) []byte {
	random := rand.NewChaCha8([32]byte{byte(employee), byte(employee >> 8), byte(edition)})
	picture := make([]byte, size)
	_, _ = random.Read(picture) // never an error
	return picture
}

// album is badges with blobs, and by hand.
type album struct {
	c      *company
	badges []*Badge // as they are stored
	repo   *patterns.Repository[Badge]
	photo  *largeentities.Property[Badge]
	blobs  *container.Client
	pieces *patterns.Repository[Pieces]
}

func (c *company) openAlbum(ctx context.Context) (*album, error) {
	a := &album{c: c}
	table, err := c.table(ctx, "Photos")
	if err != nil {
		return nil, err
	}
	plain, err := c.table(ctx, "PhotosPlain")
	if err != nil {
		return nil, err
	}
	if a.blobs, err = c.container(ctx, "photos"); err != nil {
		return nil, err
	}
	a.photo = largeentities.NewProperty[Badge]("Photo", a.blobs, &largeentities.Options{ContentType: "image/jpeg"})
	contract := largeentities.NewStream("Contract", func(b *Badge) *largeentities.Stream { return &b.Contract }, a.blobs, nil)
	a.repo, err = patterns.NewRepository(table, patterns.Schema[Badge]{
		Key:  func(b *Badge) tables.Key { return employeeKey(b.Department, b.ID) },
		Rows: compoundkey.Starting("empid"),
	}, a.photo, contract)
	if err != nil {
		return nil, err
	}
	a.pieces, err = patterns.NewRepository(plain, patterns.Schema[Pieces]{
		Key:  func(p *Pieces) tables.Key { return employeeKey(p.Department, p.ID) },
		Rows: compoundkey.Starting("empid"),
	})
	return a, err
}

func (a *album) june() *Badge { return a.badges[len(a.badges)-1] }

func (a *album) load(ctx context.Context, s *section) error {
	some := a.c.staff[jones-photographed : jones]
	if err := a.c.exposed(s, "employees with photos inserted", func() (string, error) {
		for _, e := range some {
			b := &Badge{Department: e.Department, ID: e.ID, Email: e.Email, Photo: newPicture(e.ID, 1, photoSize)}
			if err := insert(ctx, a.repo, b); err != nil {
				return "", err
			}
			a.badges = append(a.badges, b)
		}
		return fmt.Sprintf("%s: for each a blob, a transaction, 2 of the queue, and 1 to read again", counted(len(some), "employee")), nil
	}); err != nil {
		return err
	}
	if err := a.c.drainIntents(ctx); err != nil {
		return err
	}
	for _, b := range a.badges {
		p := &Pieces{Department: b.Department, ID: b.ID, Email: b.Email, Photo1: b.Photo[:pieceSize], Photo2: b.Photo[pieceSize:]}
		if err := a.pieces.Insert(ctx, p); err != nil {
			return err
		}
	}
	return nil
}

// askForPhoto asks for one employee with photo. In pieces it is one request, as long as it fits.
func (a *album) askForPhoto(ctx context.Context, s *section) error {
	key := employeeKey(sales, jones)
	without := reading(func(ctx context.Context) (*Badge, error) {
		p, err := a.pieces.Get(ctx, key)
		if err != nil {
			return nil, err
		}
		return &Badge{Department: p.Department, ID: p.ID, Email: p.Email, Photo: append(append(p.Photo1, p.Photo2...), p.Photo3...)}, nil
	})
	return ask(ctx, a.c, s, asked[Badge, badgeRecord]{text: "June Jones with her photo", without: without, record: (*Badge).record,
		with: reading(func(ctx context.Context) (*Badge, error) { return a.repo.Get(ctx, key) })})
}

// readContract writes a contract as a stream, and reads of it what is asked for.
func (a *album) readContract(ctx context.Context, s *section) error {
	june, contract := a.june(), newPicture(jones, 0, contractSize)
	june.Contract = largeentities.NewStreamFunc(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(contract)), nil },
		&largeentities.StreamOptions{ContentType: "application/pdf"})
	if err := a.c.act(s, "a contract of 3 MiB added", func() (string, error) {
		return "sent in blocks; her photo stays in its blob", a.repo.Replace(ctx, june)
	}); err != nil {
		return err
	}
	if err := a.c.act(s, "1,000 bytes of it read", func() (_ string, err error) {
		const offset, n = 2 << 20, 1000
		part, err := june.Contract.OpenRange(ctx, offset, n)
		if err != nil {
			return "", err
		}
		defer func() { err = errors.Join(err, part.Close()) }()
		got, err := io.ReadAll(part)
		if err == nil && !bytes.Equal(got, contract[offset:offset+n]) {
			return "", errors.New("it is another part")
		}
		return "and no more", err
	}); err != nil {
		return err
	}
	return a.c.act(s, "all of it read", func() (string, error) {
		hash := sha256.New()
		_, err := june.Contract.Download(ctx, hash, nil)
		if err == nil && [sha256.Size]byte(hash.Sum(nil)) != sha256.Sum256(contract) {
			return "", errors.New("it is another one")
		}
		return "length and SHA-256 are right", err
	})
}

// replacePhoto: the old blob goes when no entity points at it any more.
func (a *album) replacePhoto(ctx context.Context, s *section) error {
	june := a.june()
	june.Photo = newPicture(jones, 2, photoSize)
	if err := a.c.act(s, "her photo replaced", func() (string, error) {
		return "another blob, then the entity, then the old blob is deleted", a.repo.Replace(ctx, june)
	}); err != nil {
		return err
	}
	return a.compareBlobs(ctx, len(a.badges)+1)
}

// compareBlobs counts the container's blobs: one for each photo and contract, and no other.
func (a *album) compareBlobs(ctx context.Context, want int) error {
	found := 0
	for pager := a.blobs.NewListBlobsFlatPager(nil); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return err
		}
		found += len(page.Segment.BlobItems)
	}
	if found != want {
		return fmt.Errorf("%d blobs in the container, there should be %d", found, want)
	}
	return nil
}

// refusePlain: within the entity there is an end to it.
func (a *album) refusePlain(ctx context.Context, s *section) error {
	return a.c.act(s, "a photo in one property, without the pattern", func() (string, error) {
		err := a.pieces.Insert(ctx, &Pieces{Department: sales, ID: a.c.newHire("").ID, Photo1: newPicture(0, 1, photoSize)})
		if !errors.Is(err, tables.ErrTooLarge) {
			return "", fmt.Errorf("it was not refused: %w", err)
		}
		return "refused: " + tables.ErrTooLarge.Error(), nil
	})
}

// dismiss deletes an employee: her blobs go with her.
func (a *album) dismiss(ctx context.Context, s *section) error {
	if err := a.c.act(s, "an employee deleted", func() (string, error) {
		return "and the blobs of photo and contract", a.repo.Delete(ctx, a.june())
	}); err != nil {
		return err
	}
	a.badges = a.badges[:len(a.badges)-1]
	return a.compareBlobs(ctx, len(a.badges))
}

// check reads everybody with photo, and sweeps: no blob is without an entity.
func (a *album) check(ctx context.Context, s *section) error {
	return a.c.act(s, "all photos, and a sweep", func() (string, error) {
		for _, want := range a.badges {
			got, err := a.repo.Get(ctx, a.repo.KeyOf(want))
			if err != nil {
				return "", err
			}
			if got.record() != want.record() {
				return "", fmt.Errorf("employee %d is not as written", want.ID)
			}
		}
		if err := a.c.drainIntents(ctx); err != nil {
			return "", err
		}
		report, err := a.photo.Sweep(ctx, nil)
		if err != nil {
			return "", err
		}
		if report.Listed != len(a.badges) || report.Deleted > 0 {
			return "", fmt.Errorf("of %d blobs the sweep has deleted %d", report.Listed, report.Deleted)
		}
		return fmt.Sprintf("%s, as written; no blob is left over, no intent is left", counted(len(a.badges), "photo")), nil
	})
}
