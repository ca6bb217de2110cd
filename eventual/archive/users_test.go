package archive_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"

	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/tables"
)

// user changes one end of a move once. What the user was told stands in a row of the ledger, which is a table of its own: a
// user without a row died, or never came.
type user struct {
	name   string // also what an update adds to the note
	atCopy bool   // else at the source
	act    string // updates, deletes, inserts again
}

const (
	updates      = "updates"
	deletes      = "deletes"
	insertsAgain = "inserts again" // deletes, and inserts something else under the key
)

// acts are what a user can do; "" is nothing.
func acts() []string { return []string{"", updates, deletes, insertsAgain} }

// usersOf makes the users that do something.
func usersOf(atSource, atCopy string) (us []user) {
	if atSource != "" {
		us = append(us, user{name: "source", act: atSource})
	}
	if atCopy != "" {
		us = append(us, user{name: "copy", atCopy: true, act: atCopy})
	}
	return us
}

// token is what an update adds to the note.
func (u user) token() string { return " +" + u.name }

func (u user) successor(c *clerk) *clerk {
	return &clerk{Department: c.Department, ID: c.ID, Email: c.Email, Life: "of " + u.name, Note: "hired"}
}

// come makes the change, and notes what the user was told.
func (u user) come(ctx context.Context, p *officer) error {
	seen, outcome := "", "refused"
	err := u.change(ctx, p, &seen)
	switch {
	case err == nil:
		outcome = "done"
	case storageUnsure(err):
		return err
	case !lost(err) && !errors.Is(err, errOtherLife) && !isBlobRefusal(err):
		return err
	}
	return p.ledger.Entities().Insert(ctx, &tables.Entity{Key: tables.Key{Partition: "ledger", Row: u.name},
		Properties: tables.Properties{{Name: "Outcome", Value: tables.String(outcome)}, {Name: "Seen", Value: tables.String(seen)}}})
}

var errOtherLife = errors.New("somebody else's")

func (u user) change(ctx context.Context, p *officer, seen *string) error {
	if u.atCopy && p.toBlobs {
		return u.changeBlob(ctx, p, seen)
	}
	repo := p.current
	if u.atCopy {
		repo = p.archive
	}
	c, err := repo.Get(ctx, clerkKey(june()))
	if err == nil && c.Life != june().Life {
		err = errOtherLife
	}
	if err != nil {
		return err
	}
	if u.act == updates {
		c.Note += u.token()
		return repo.Replace(ctx, c)
	}
	if err := repo.Delete(ctx, c); err != nil {
		return err
	}
	*seen = c.Note
	if u.act == insertsAgain {
		err = repo.Insert(ctx, u.successor(c))
		if lost(err) {
			err = nil // the delete was made
		}
	}
	return err
}

// changeBlob is change for an archive: by a program that keeps the metadata when it updates.
func (u user) changeBlob(ctx context.Context, p *officer, seen *string) error {
	c, at, err := p.readBlob(ctx, june())
	if err != nil {
		return err
	}
	if c.Life != june().Life {
		return errOtherLife
	}
	same := sameBlob(at.ETag)
	client := blobstorage.Container(p.queue.Account(), p.container).NewBlockBlobClient(clerkBlob(june()))
	switch u.act {
	case updates:
		text := bytes.Replace(at.text, []byte(c.Note), []byte(c.Note+u.token()), 1)
		_, err = client.Upload(ctx, streaming.NopCloser(bytes.NewReader(text)), &blockblob.UploadOptions{Metadata: maps.Clone(at.Metadata), AccessConditions: same})
		return err
	case deletes:
		if _, err = client.Delete(ctx, &blob.DeleteOptions{AccessConditions: same}); err != nil {
			return err
		}
	case insertsAgain: // a blob is replaced at once
		text := bytes.Replace(at.text, []byte(june().Life), []byte(u.successor(c).Life), 1)
		if _, err = client.Upload(ctx, streaming.NopCloser(bytes.NewReader(text)), &blockblob.UploadOptions{AccessConditions: same}); err != nil {
			return err
		}
	}
	*seen = c.Note
	return nil
}

func isBlobRefusal(err error) bool {
	var response *azcore.ResponseError
	return errors.As(err, &response) && (response.StatusCode == 404 || response.StatusCode == 412)
}

func sameBlob(etag *azcore.ETag) *blob.AccessConditions {
	return &blob.AccessConditions{ModifiedAccessConditions: &blob.ModifiedAccessConditions{IfMatch: etag}}
}

// archivedBlob is an archive as it was read, with one request.
type archivedBlob struct {
	ETag     *azcore.ETag
	Metadata map[string]*string
	text     []byte
}

// readBlob reads the archive of a clerk, as any program can that knows that a pending blob is none.
func (p *officer) readBlob(ctx context.Context, of *clerk) (*clerk, *archivedBlob, error) {
	answer, err := blobstorage.Container(p.queue.Account(), p.container).NewBlobClient(clerkBlob(of)).DownloadStream(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return nil, nil, err
	}
	if len(text) == 0 {
		return nil, nil, errOtherLife
	}
	var stored struct{ Properties struct{ Life, Note string } }
	if err := json.Unmarshal(text, &stored); err != nil {
		return nil, nil, err
	}
	c := &clerk{Department: of.Department, ID: of.ID, Life: stored.Properties.Life, Note: stored.Properties.Note}
	return c, &archivedBlob{answer.ETag, answer.Metadata, text}, nil
}

// promised tells what users were promised and is not so, at rest.
func (p *officer) promised(ctx context.Context, users []user) error {
	found, err := p.find(ctx, june())
	if err != nil {
		return err
	}
	poisoned, err := p.queue.Poison().Peek(ctx, 32)
	if err != nil {
		return err
	}
	b, err := p.balance(ctx, users, found)
	if err != nil {
		return err
	}
	if err := b.wrong(len(poisoned) > 0 || p.bothChanged, p.toBlobs); err != nil {
		var reasons []string
		for _, e := range poisoned {
			reasons = append(reasons, e.Reason)
		}
		return fmt.Errorf("%w: %v; the ledger has %v; poison %q", err, found, b.outcomes, reasons)
	}
	return errors.Join(p.checkRows(ctx), p.checkLeftOver(ctx))
}

// balance is what the ledger says of the two ends.
type balance struct {
	places
	outcomes                      map[string]string
	lost                          []string // updates that were acknowledged and are nowhere
	deleted, unsure               bool     // somebody deleted the clerk; may have
	wroteSource, wroteCopy, other bool
}

func (p *officer) balance(ctx context.Context, users []user, found places) (*balance, error) {
	b, died := &balance{places: found, outcomes: map[string]string{}}, false
	kept := ""
	for _, c := range []*clerk{found.current, found.archived} {
		if c != nil && c.Life == june().Life {
			kept += c.Note
		}
	}
	var updated []string
	for _, u := range users {
		row, err := p.ledger.Entities().Get(ctx, tables.Key{Partition: "ledger", Row: u.name})
		if err != nil && !errors.Is(err, tables.ErrNotFound) {
			return nil, err
		}
		outcome := "unknown"
		if err == nil {
			outcome, _ = row.Get("Outcome").Text()
			seen, _ := row.Get("Seen").Text()
			kept += seen
		}
		b.outcomes[u.name+" "+u.act] = outcome
		if outcome == "refused" {
			continue
		}
		b.wroteCopy, b.wroteSource = b.wroteCopy || u.atCopy, b.wroteSource || !u.atCopy
		b.other = b.other || u.atCopy && u.act == insertsAgain
		if u.act != updates {
			b.deleted, b.unsure, died = b.deleted || outcome == "done", true, died || outcome == "unknown"
		} else if outcome == "done" {
			updated = append(updated, u.token())
		}
	}
	if died {
		return b, nil // a user died before it could tell what it has deleted
	}
	b.lost = slices.DeleteFunc(updated, func(token string) bool { return strings.Contains(kept, token) })
	return b, nil
}

func (b *balance) wrong(poisoned, toBlobs bool) error {
	isJune := func(c *clerk) bool { return c != nil && c.Life == june().Life }
	atSource, atCopy := isJune(b.current), isJune(b.archived)
	switch {
	case len(b.lost) > 0:
		return fmt.Errorf("acknowledged updates%v are lost", b.lost)
	case !atSource && !atCopy && !b.unsure:
		return errors.New("the clerk is in neither place, and nobody deleted it")
	case poisoned && !b.other && !(b.wroteCopy && (b.wroteSource || toBlobs)):
		return errors.New("poison without a reason")
	case poisoned:
		return nil
	case atSource && atCopy:
		return errors.New("the clerk is in both places, and no poison says so")
	case (atSource || atCopy) && b.deleted:
		return errors.New("somebody deleted the clerk, it is there, and no poison says so")
	case atSource:
		return errors.New("the clerk was not moved, and no poison says so")
	}
	return nil
}

// checkLeftOver finds what movers keep while they move.
func (p *officer) checkLeftOver(ctx context.Context) error {
	for _, name := range []string{p.office.current, p.office.archive} {
		for e, err := range p.queue.Account().Table(name).Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return err
			}
			if strings.HasPrefix(e.Key.Row, "\uFFFCmove") {
				return fmt.Errorf("row %q of table %s is left", e.Key.Row, name)
			}
		}
	}
	pages := blobstorage.Container(p.queue.Account(), p.container).NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Include: container.ListBlobsInclude{Metadata: true}})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, b := range page.Segment.BlobItems {
			for name := range b.Metadata {
				if strings.EqualFold(name, "tppending") {
					return fmt.Errorf("blob %q is pending for good", *b.Name)
				}
			}
		}
	}
	return nil
}

// lost reports whether a concurrent writer came first.
func lost(err error) bool {
	return slices.Contains([]error{tables.ErrConflict, tables.ErrExists, tables.ErrNotFound}, tables.KindOf(err))
}
