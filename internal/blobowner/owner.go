// Package blobowner decides whether a blob whose name was read from a row, a message or a blob belongs to its owner: an entity, a message or
// a log.
//
// All of these are input from outside. Without this check, an attacker who can write the rows of one partition, or put a message on a
// queue, could make the library read, sign or delete any blob of the container. So the library checks every such name with CheckName before a
// request names the blob, and the blob's own metadata with CheckLabels whenever a response has it.
package blobowner

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"unicode"
)

// HomeLabel is the name of the metadata that identifies the table to whose entities a blob belongs: see Home.
const HomeLabel = "tphome"

// ErrForeign means that a blob's name or metadata do not belong to the owner.
var ErrForeign = errors.New("does not belong")

// Owner describes the blobs that belong to one owner.
type Owner struct {
	What   string            // for errors, such as "the entity"
	Prefix string            // begins the names of the owner's blobs and ends with a slash
	Labels map[string]string // metadata that every blob of the owner carries, by name in lower case
}

// CheckName returns an error unless the name consists of Prefix and of segments that no client or server interprets as
// another path. A segment is refused if it is empty, ends with a dot, or has a backslash or control character; the SDK
// percent-encodes all other characters.
func (o Owner) CheckName(name string) error {
	rest, ok := strings.CutPrefix(name, o.Prefix)
	if !ok || o.Prefix == "" {
		return fmt.Errorf("blob %q %w to %s, whose blobs have names that begin with %q; restore the row that names it", name, ErrForeign, o.What, o.Prefix)
	}
	for part := range strings.SplitSeq(rest, "/") {
		if part == "" || strings.HasSuffix(part, ".") || strings.Contains(part, "\\") || strings.ContainsFunc(part, unicode.IsControl) {
			return fmt.Errorf("blob %q %w to %s: the library gives no blob such a name; restore the row that names it", name, ErrForeign, o.What)
		}
	}
	return nil
}

// CheckLabels returns an error unless the metadata of a blob names the owner.
func (o Owner) CheckLabels(blob string, meta map[string]*string) error {
	for name, want := range o.Labels {
		if got := Label(meta, name); got != want {
			return fmt.Errorf("blob %q %w to %s: its metadata %s is %q, want %q; restore the blob, or the row that names it", blob, ErrForeign, o.What, name, got, want)
		}
	}
	return nil
}

// Metadata returns the metadata to store with a blob: the owner's labels and further entries.
func (o Owner) Metadata(further map[string]string) map[string]*string {
	meta := make(map[string]*string, len(o.Labels)+len(further))
	for _, labels := range []map[string]string{o.Labels, further} {
		for name, value := range labels {
			meta[name] = &value
		}
	}
	return meta
}

// Home returns the value of HomeLabel for a table of an account, in base64, since metadata must be ASCII.
func Home(account, table string) string {
	return base64.RawURLEncoding.EncodeToString([]byte(account + "/" + table))
}

// Label returns an entry of a blob's metadata, "" if there is none. It ignores the case of the name, since
// the service may return the name in another case.
func Label(meta map[string]*string, name string) string {
	for key, value := range meta {
		if value != nil && strings.EqualFold(key, name) {
			return *value
		}
	}
	return ""
}
