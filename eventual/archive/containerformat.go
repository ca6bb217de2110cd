package archive

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/core"
	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/errs"
	"github.com/tablepatterns/tablepatterns/internal/tablerow"
	"github.com/tablepatterns/tablepatterns/internal/wire"
	"github.com/tablepatterns/tablepatterns/tables"
)

// archiveVersion is the version of the JSON that ToContainer writes to a blob.
const archiveVersion = 1

// typeSuffix ends the name of the member that holds the type of a property. No property name contains '@'.
const typeSuffix = "@odata.type"

// systemPrefix begins the names of the library's own properties, which are never archived.
const systemPrefix = "_tp"

// encode returns the JSON of an entity.
func (d toContainer[T]) encode(key tables.Key, entity *T) ([]byte, error) {
	properties, err := d.codec.Encode(entity)
	if err != nil {
		return nil, err
	}
	b := fmt.Appendf(nil, `{"v":%d,"partition":`, archiveVersion)
	b = append(edm.AppendQuoted(b, key.Partition), `,"row":`...)
	b = append(edm.AppendQuoted(b, key.Row), `,"properties":{`...)
	first := true
	for _, property := range properties {
		if property.Value.IsNull() {
			continue // a table does not store a null property either
		}
		if err := edm.CheckName(property.Name); err != nil {
			return nil, errs.InvalidIn("Move", "", "%w", err)
		}
		if !first {
			b = append(b, ',')
		}
		b, first = edm.AppendProperty(b, property.Name, edm.Value(property.Value)), false
	}
	return append(b, '}', '}'), nil
}

// decodeArchived decodes the JSON that encode writes.
func decodeArchived(text []byte) (tables.Key, tables.Properties, error) {
	var stored struct {
		Version    int            `json:"v"`
		Partition  *string        `json:"partition"`
		Row        *string        `json:"row"`
		Properties jsontext.Value `json:"properties"`
	}
	if err := json.Unmarshal(text, &stored); err != nil {
		return tables.Key{}, nil, fmt.Errorf("the blob's content, %d bytes, is not the JSON of an entity; restore the blob from a backup", len(text))
	}
	if stored.Version != archiveVersion {
		return tables.Key{}, nil, fmt.Errorf("the blob has format version %d, and this build reads version %d; use a newer build", stored.Version, archiveVersion)
	}
	if stored.Partition == nil || stored.Row == nil {
		return tables.Key{}, nil, errors.New("the blob's JSON has no partition key or no row key; restore the blob from a backup")
	}
	key := tables.Key{Partition: *stored.Partition, Row: *stored.Row}
	if err := errors.Join(compoundkey.CheckKey(key.Partition), compoundkey.CheckKey(key.Row)); err != nil {
		return tables.Key{}, nil, fmt.Errorf("the blob has the key %q, %q, which an entity cannot have: %w", key.Partition, key.Row, err)
	}
	properties, err := decodeProperties(stored.Properties)
	return key, properties, err
}

// checkArchivedName refuses property names that no archived entity has. Otherwise anybody who can write blobs
// could set the keys and the library's own properties of an entity that a program restores.
func checkArchivedName(name string) error {
	switch {
	case name == "PartitionKey", name == "RowKey", name == "Timestamp", strings.HasPrefix(name, systemPrefix):
		return fmt.Errorf("the blob has property %s, which an archived entity cannot have; restore the blob from a backup", name)
	}
	return edm.CheckName(name)
}

var errNoProperties = errors.New("the member properties of the blob's JSON is not an object; restore the blob from a backup")

// decodeProperties decodes the member properties. A type may stand before or after its value, since another program may have
// reordered the members.
func decodeProperties(object jsontext.Value) (tables.Properties, error) {
	in := jsontext.NewDecoder(bytes.NewReader(object))
	if token, err := in.ReadToken(); err != nil || token.Kind() != '{' {
		return nil, errNoProperties
	}
	var names []string
	values, types := map[string]jsontext.Value{}, map[string]edm.Type{}
	for in.PeekKind() == '"' {
		token, err := in.ReadToken()
		if err != nil {
			return nil, errNoProperties
		}
		name := token.String()
		raw, err := in.ReadValue()
		if err != nil {
			return nil, errNoProperties
		}
		property, isType := strings.CutSuffix(name, typeSuffix)
		if !isType {
			if err := checkArchivedName(name); err != nil {
				return nil, err
			}
			names, values[name] = append(names, name), raw.Clone()
			continue
		}
		text, _ := jsontext.AppendUnquote(nil, raw) // if raw is not a string, text is empty and names no type
		if types[property], isType = edm.ParseType(text); !isType {
			return nil, fmt.Errorf("property %s has a type that this build does not know; use a newer build", property)
		}
	}
	var properties tables.Properties
	for _, name := range names {
		value, err := decodeValue(types[name], values[name])
		if err != nil {
			return nil, fmt.Errorf("property %s of the blob's JSON: %w; restore the blob from a backup", name, err)
		}
		properties = append(properties, tables.Property{Name: name, Value: tables.Value(value)})
	}
	return properties, nil
}

// decodeValue decodes a value. t is its annotated type, TypeNull without an annotation.
func decodeValue(t edm.Type, raw jsontext.Value) (edm.Value, error) {
	switch raw.Kind() {
	case '"':
		text, err := jsontext.AppendUnquote(nil, raw)
		if err != nil {
			return edm.Value{}, err
		}
		if t == edm.TypeNull {
			t = edm.TypeString
		}
		return edm.FromText(t, text)
	case '0':
		return edm.FromNumber(t, raw)
	case 't', 'f':
		if t == edm.TypeNull || t == edm.TypeBoolean {
			return edm.Boolean(raw.Kind() == 't'), nil
		}
	}
	return edm.Value{}, errors.New("the value does not match the annotated type")
}

// Read reads an entity that a Mover has moved into a container. The entity's Meta is empty, so you can insert
// it into a repository again. If T is tables.Entity, the result has all properties and the key that the entity
// had.
//
// Read returns tables.ErrNotFound if there is no blob of this name, or if the blob is pending. It returns
// tables.ErrGarbled if no Mover wrote the blob, if it has more than 32 MiB, or if a later version of this library wrote it. Requests: 1.
func Read[T any](ctx context.Context, c *container.Client, name string) (*T, error) {
	const op = "archive.Read"
	if c == nil || name == "" {
		return nil, errs.InvalidIn(op, name, "the container is nil or the blob's name empty; give both")
	}
	codec, err := tables.NewCodec[T]()
	if err != nil {
		return nil, err
	}
	answer, err := c.NewBlobClient(name).DownloadStream(ctx, nil)
	if err != nil {
		return nil, core.ServiceError(op, name, err)
	}
	defer answer.Body.Close()
	for key := range answer.Metadata {
		if strings.EqualFold(key, metaPending) {
			return nil, &tables.Error{Op: op, Table: name, Kind: tables.ErrNotFound,
				Err: errors.New("the blob is pending: a Mover has not put the entity there yet; try again later")}
		}
	}
	text, err := wire.ReadAll(answer.Body, answer.ContentLength, maxContent)
	if err != nil {
		return nil, core.ServiceError(op, name, err)
	}
	v, err := openArchive(codec, text)
	if err != nil {
		return nil, &tables.Error{Op: op, Table: name, Kind: tables.ErrGarbled, Err: err}
	}
	return v, nil
}

// openArchive makes an entity from the content of a blob.
func openArchive[T any](codec *tables.Codec[T], text []byte) (*T, error) {
	key, properties, err := decodeArchived(text)
	if err != nil {
		return nil, err
	}
	v := new(T)
	if err := codec.Decode(properties, v); err != nil {
		return nil, err
	}
	(*core.Codec)(codec).Finish(&tablerow.Row{}, key, v)
	return v, nil
}
