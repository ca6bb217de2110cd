package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Uses counts, by data key, the properties of all rows of the given tables that were encrypted under it, seals among them,
// also in copies, and in the further rows of entities that are spread over several. Give it the tables of the entities and those
// of their copies elsewhere. UsesInBlobs counts sealed blobs. It is a table scan by nature. Requests: 1 for each 1,000 rows.
func Uses(ctx context.Context, among ...*tables.Table) (map[DataKeyID]int64, error) {
	uses := map[DataKeyID]int64{}
	for _, table := range among {
		var text []byte
		for row, err := range table.Entities().Query().AllowTableScan().All(ctx) {
			if err != nil {
				return nil, err
			}
			slices.SortFunc(row.Properties, func(a, b tables.Property) int { return strings.Compare(a.Name, b.Name) })
			text = append(text[:0], text[max(0, len(text)-packedID+1):]...) // what goes on in this row may have begun in the one before
			for _, property := range row.Properties {
				if b, binary := property.Value.Bytes(); binary && len(b) >= headerSize && looksEncrypted(b) {
					uses[DataKeyID(b[8:24])]++
				}
				s, _ := property.Value.Text()
				text = append(text, s...)
			}
			countPacked(uses, text)
		}
	}
	return uses, nil
}

// A layout packs values into texts, binary ones in base64, cut anywhere into several properties and rows. In base64 the
// magic has a text of its own, and all up to the end of the data key's id, 24 bytes, has 32 characters.
const (
	packedMagic = "VFBF"
	packedID    = 32
)

// countPacked counts what is packed in a text. What only looks so counts for a data key that there is not.
func countPacked(uses map[DataKeyID]int64, text []byte) {
	for {
		at := bytes.Index(text, []byte(packedMagic))
		if at < 0 || len(text)-at < packedID {
			return
		}
		var b [24]byte
		n, err := base64.StdEncoding.Decode(b[:], text[at:at+packedID])
		if err == nil && n == len(b) && looksEncrypted(b[:]) {
			uses[DataKeyID(b[8:])]++
		}
		text = text[at+1:]
	}
}
