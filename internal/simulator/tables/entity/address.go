package entity

import "strings"

// AppendAddress appends an entity's URL path as responses contain it: with doubled quotes and percent-encoding.
func AppendAddress(dst []byte, table, pk, rk string) []byte {
	dst = append(append(dst, table...), "(PartitionKey='"...)
	dst = appendAddressKey(dst, pk)
	dst = append(dst, "',RowKey='"...)
	return append(appendAddressKey(dst, rk), "')"...)
}

func appendAddressKey(dst []byte, key string) []byte {
	const upperHex = "0123456789ABCDEF"
	for i := range len(key) {
		switch c := key[i]; {
		case c == '\'':
			dst = append(dst, "''"...)
		case c <= ' ' || c >= 0x7F || strings.IndexByte("\"%<>[]^`{|}", c) >= 0:
			dst = append(dst, '%', upperHex[c>>4], upperHex[c&15])
		default:
			dst = append(dst, c)
		}
	}
	return dst
}
