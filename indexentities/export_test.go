package indexentities

import "github.com/tablepatterns/tablepatterns/tables"

// EncodeIDs is for tests that need long lists at once: what a row of a list holds.
func EncodeIDs(ids []string) tables.Properties { return encodeIDs(ids) }
