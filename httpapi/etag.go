package httpapi

import (
	"encoding/base64"
	"net/http"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/tables"
)

const (
	ifMatch     = "If-Match"
	ifNoneMatch = "If-None-Match"

	// encodedTag begins a tag that holds the service's ETag in base64, if that is not legal in a header.
	encodedTag = "~"

	maxConditionBytes = 8192 // of a header
	maxConditionTags  = 100  // of a header
)

// FormatETag returns the entity tag for an ETag of Azure Storage, such as "datetime'2026-01-01T00%3A00%3A00Z'" for
// W/"datetime'2026-01-01T00%3A00%3A00Z'"; "" for "". It is strong, since each write changes the ETag, and changes only with the entity: if your
// response depends on anything else, such as a language, use a resource for each variant.
func FormatETag(etag azcore.ETag) string {
	if etag == "" {
		return ""
	}
	if opaque, weak := strings.CutPrefix(string(etag), "W/"); weak && isOpaque(opaque) && !strings.HasPrefix(opaque, `"`+encodedTag) {
		return opaque
	}
	return `"` + encodedTag + base64.RawURLEncoding.EncodeToString([]byte(etag)) + `"`
}

// isOpaque reports whether a text is an opaque-tag of RFC 9110: in quotes, without quote, space or control character.
func isOpaque(tag string) bool {
	if len(tag) < 2 || tag[0] != '"' || tag[len(tag)-1] != '"' {
		return false
	}
	for _, c := range []byte(tag[1 : len(tag)-1]) {
		if c <= 0x20 || c == '"' || c == 0x7f {
			return false
		}
	}
	return true
}

// etagOf is the inverse of FormatETag, also for a tag that a proxy has made weak. Any other tag matches no entity.
func etagOf(tag string) azcore.ETag {
	tag = strings.TrimPrefix(tag, "W/")
	if encoded, ok := strings.CutPrefix(strings.Trim(tag, `"`), encodedTag); ok {
		if etag, err := base64.RawURLEncoding.DecodeString(encoded); err == nil && FormatETag(azcore.ETag(etag)) == tag {
			return azcore.ETag(etag)
		}
	}
	return azcore.ETag("W/" + tag)
}

// SetETag sets the ETag header to FormatETag(etag). The ETag of an entity is in tables.Meta.
func SetETag(h http.Header, etag azcore.ETag) {
	if tag := FormatETag(etag); tag != "" {
		h.Set("ETag", tag)
	}
}

// Condition is an If-Match or If-None-Match header; zero for none.
type Condition struct {
	name  string
	any   bool
	etags []azcore.ETag
}

// IfMatch returns the condition of the If-Match header, or tables.ErrInvalid if it is malformed.
func IfMatch(r *http.Request) (Condition, error) { return condition(r, ifMatch) }

// IfNoneMatch returns the condition of the If-None-Match header, or tables.ErrInvalid if it is malformed.
func IfNoneMatch(r *http.Request) (Condition, error) { return condition(r, ifNoneMatch) }

// RequireIfMatch is IfMatch for requests that must not overwrite a version that the caller has not read. It returns ErrPreconditionRequired without
// the header, and for "If-Match: *".
func RequireIfMatch(r *http.Request) (Condition, error) {
	c, err := IfMatch(r)
	if err == nil && (!c.Given() || c.Any()) {
		return Condition{}, errs.Invalid("RequireIfMatch", ErrPreconditionRequired)
	}
	return c, err
}

// condition parses "*", or a list of tags, in one or several lines.
func condition(r *http.Request, name string) (Condition, error) {
	lines := r.Header.Values(name)
	if len(lines) == 0 {
		return Condition{}, nil
	}
	c, text := Condition{name: name}, strings.Join(lines, ",")
	if len(text) > maxConditionBytes {
		return Condition{}, errs.Invalidf(name, "the header has %d bytes; it must have at most %d", len(text), maxConditionBytes)
	}
	if text = strings.Trim(text, " \t"); text == "*" {
		c.any = true
		return c, nil
	}
	for text != "" {
		if text[0] == ',' || text[0] == ' ' || text[0] == '\t' {
			text = text[1:] // empty elements are legal
			continue
		}
		tag, rest, ok := cutTag(text)
		if !ok || len(c.etags) == maxConditionTags {
			return Condition{}, errs.Invalidf(name, `the header is malformed; it must be * or at most %d quoted tags with commas between them, such as "abc"`, maxConditionTags)
		}
		c.etags, text = append(c.etags, etagOf(tag)), rest
	}
	if c.etags == nil {
		return Condition{}, errs.Invalidf(name, "the header is empty; it must be * or a list of quoted tags")
	}
	return c, nil
}

// cutTag returns the first tag of a list and the rest; ok is false if there is no tag before a comma or the end.
func cutTag(text string) (tag, rest string, ok bool) {
	weak, opaque := "", text
	if strings.HasPrefix(text, "W/") {
		weak, opaque = text[:2], text[2:]
	}
	if !strings.HasPrefix(opaque, `"`) {
		return "", "", false
	}
	end := strings.IndexByte(opaque[1:], '"') + 2
	if end == 1 || !isOpaque(opaque[:end]) {
		return "", "", false
	}
	rest = strings.TrimLeft(opaque[end:], " \t")
	return weak + opaque[:end], rest, rest == "" || rest[0] == ','
}

// Given reports whether the request has the header.
func (c Condition) Given() bool { return c.name != "" }

// Any reports whether the header is "*": If-None-Match: * asks for an insert, If-Match: * for a replacement of any version.
func (c Condition) Any() bool { return c.any }

// ETags returns the listed ETags of Azure Storage.
func (c Condition) ETags() []azcore.ETag { return slices.Clone(c.etags) }

// Matches reports whether the header lists the entity's ETag, or is "*" and the entity exists; etag is "" if it does not. A tag that a proxy has
// made weak matches, too: it still names one version.
func (c Condition) Matches(etag azcore.ETag) bool {
	return etag != "" && (c.any || slices.Contains(c.etags, etag))
}

// Check returns ErrPreconditionFailed if If-Match does not match the entity's ETag, or If-None-Match matches it; etag is "" if the entity does not
// exist. Without the header it returns nil. Write under the ETag even after the check, as Repository.Replace does: another writer can change the
// entity in between.
func (c Condition) Check(etag azcore.ETag) error {
	if c.Given() && c.Matches(etag) != (c.name == ifMatch) {
		return &tables.Error{Op: c.name, Kind: tables.ErrConflict, Err: ErrPreconditionFailed}
	}
	return nil
}

// NotModified sets the ETag header. If the If-None-Match of a GET or HEAD matches, it responds 304 Not Modified and returns true; the handler then
// returns. A malformed header matches nothing.
func NotModified(w http.ResponseWriter, r *http.Request, etag azcore.ETag) bool {
	SetETag(w.Header(), etag)
	c, err := IfNoneMatch(r)
	if err != nil || !c.Matches(etag) || r.Method != http.MethodGet && r.Method != http.MethodHead {
		return false
	}
	w.WriteHeader(http.StatusNotModified)
	return true
}
