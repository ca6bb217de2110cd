package check

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// pointer is stored in a row in place of a value that is in a blob.
type pointer struct {
	blob   string
	length int64
	hash   string
}

// checkBlobs compares the blobs with the pointers to them. An entity whose blob is wrong cannot be read, so its copies
// are not checked.
func (c *checker) checkBlobs(ctx context.Context) error {
	for _, b := range c.Blobs {
		stored, err := b.stored(ctx)
		if err != nil {
			return err
		}
		pointed := map[string]bool{}
		for _, row := range c.other {
			if p, err := b.pointerIn(row); err == nil && p != nil {
				pointed[p.blob] = true
			}
		}
		for key, row := range c.primary {
			p, err := b.pointerIn(row)
			if err != nil {
				c.broken[key] = true
				c.report(Unreadable, b.Property, "", key, "%v", err)
			}
			if p == nil {
				continue
			}
			pointed[p.blob] = true
			there, is := stored[p.blob]
			switch {
			case !is:
				c.broken[key] = true
				c.report(Missing, b.Property, p.blob, key, "")
			case there != *p:
				c.broken[key] = true
				c.report(Different, b.Property, p.blob, key, "it has %d bytes and SHA-256 %s", there.length, there.hash)
			}
		}
		for name := range stored {
			if !pointed[name] {
				c.report(Spurious, b.Property, name, Key{}, "")
			}
		}
	}
	return nil
}

// pointerIn returns the pointer in a row, nil if the value is in the row or there is none.
func (b *Blob) pointerIn(row Row) (*pointer, error) {
	value, annotation := row.Raw(b.Property)
	if value == "" || annotation == "Edm.Binary" {
		return nil, nil
	}
	text, ok := row.Text(b.Property)
	parts := strings.SplitN(text, " ", 5)
	if !ok || len(parts) != 5 || parts[0] != "tp1" {
		return nil, errors.New("the property is neither bytes nor a pointer to a blob")
	}
	length, err := strconv.ParseInt(parts[1], 10, 64)
	if err != nil {
		return nil, err
	}
	return &pointer{blob: parts[3], length: length, hash: parts[2]}, nil
}

// stored reads all blobs of the property; the keys of the result are their names.
func (b *Blob) stored(ctx context.Context) (map[string]pointer, error) {
	prefix, found := b.Prefix+"/", map[string]pointer{}
	for pager := b.Container.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix}); pager.More(); {
		page, err := pager.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, item := range page.Segment.BlobItems {
			answer, err := b.Container.NewBlobClient(*item.Name).DownloadStream(ctx, nil)
			if err != nil {
				return nil, fmt.Errorf("blob %s: %w", *item.Name, err)
			}
			h := sha256.New()
			n, err := io.Copy(h, answer.Body)
			answer.Body.Close()
			if err != nil {
				return nil, fmt.Errorf("blob %s: %w", *item.Name, err)
			}
			found[*item.Name] = pointer{*item.Name, n, hex.EncodeToString(h.Sum(nil))}
		}
	}
	return found, nil
}
