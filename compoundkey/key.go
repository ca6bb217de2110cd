package compoundkey

import (
	"time"
)

// Key is a type of index keys. The type says how a key is stored, and so a write and a read of an index store it in the same way:
//
//	string, or a type of it    String
//	Folded                     Fold: case does not matter
//	time.Time                  Time
//	Newest                     TimeDesc: the newest first
//	int, int8 ... int64        Int of width 19
//	uint, uint8 ... uint64     Uint of width 20
//	[16]byte, or a type of it  UUID
//	Part                       itself, for every other key, such as a Tuple of several values
//
// The empty string, the zero time, the nil UUID and the zero Part are not in an index; the number 0 is.
type Key interface {
	~string | signed | unsigned | ~[16]byte | time.Time | Newest | Part
}

// Folded is a text whose case does not matter in a key: Folded("June") and Folded("JUNE") are one key. A type that is
// made of Folded is a plain text.
type Folded string

// Newest is a time in a key that sorts the newest first.
type Newest time.Time
