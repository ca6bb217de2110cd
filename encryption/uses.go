package encryption

import (
	"bytes"
	"context"
	"encoding/base64"
	"slices"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// Uses counts, by data key, the encrypted properties and seals in all rows of the given tables, including
// copies and the further rows of entities that are spread over several. Pass the tables of the entities and
// those of their copies. UsesInBlobs counts sealed blobs. Uses scans the whole tables. Requests: those of
// Query.AllParallel in order, so 1 for each 1,000 rows and some additional ones.
func Uses(ctx context.Context, among ...*tables.Table) (map[DataKeyID]int64, error) {
	uses := map[DataKeyID]int64{}
	for _, table := range among {
		var text []byte
		for row, err := range table.Entities().Query().AllowTableScan().AllParallel(ctx, nil) {
			if err != nil {
				return nil, err
			}
			slices.SortFunc(row.Properties, func(a, b tables.Property) int { return strings.Compare(a.Name, b.Name) })
			text = append(text[:0], text[max(0, len(text)-packedID+1):]...) // keep the end of the previous row, where a sealed value that continues in this row may begin
			for _, property := range row.Properties {
				if b, binary := property.Value.Bytes(); binary && len(b) >= headerSize && hasHeader(b) {
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

// A layout packs values into texts, with binary values in base64, and splits the texts at any point into
// several properties and rows. In base64 the magic bytes have a fixed text, and the first 24 bytes, up to the
// end of the data key's id, have 32 characters.
const (
	packedMagic = "VFBF"
	packedID    = 32
)

// countPacked counts the sealed values packed in a text. A text that only looks like a sealed value is
// counted under an id that no data key has.
func countPacked(uses map[DataKeyID]int64, text []byte) {
	for {
		at := bytes.Index(text, []byte(packedMagic))
		if at < 0 || len(text)-at < packedID {
			return
		}
		var b [24]byte
		n, err := base64.StdEncoding.Decode(b[:], text[at:at+packedID])
		if err == nil && n == len(b) && hasHeader(b[:]) {
			uses[DataKeyID(b[8:])]++
		}
		text = text[at+1:]
	}
}
