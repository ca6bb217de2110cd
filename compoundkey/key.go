package compoundkey

import (
	"reflect"
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

// Of returns the Part of a key. For a key that is not in an index, such as the empty string, it returns the zero Part, which Join and
// Tuple refuse: for an element that may be empty, use String or Time.
func Of[K Key](k K) Part {
	var empty bool
	switch t := any(k).(type) {
	case time.Time:
		empty = t.IsZero() // in any location
	case Newest:
		empty = time.Time(t).IsZero()
	default:
		v := reflect.ValueOf(k)
		empty = v.IsZero() && !v.CanInt() && !v.CanUint()
	}
	if empty {
		return Part{}
	}
	return partOf(k)
}

// partOf returns the Part of a Key, also of a key that is not in an index.
func partOf(k any) Part {
	switch k := k.(type) {
	case Part:
		return k
	case Folded:
		return Fold(string(k))
	case time.Time:
		return Time(k)
	case Newest:
		return TimeDesc(time.Time(k))
	}
	v := reflect.ValueOf(k)
	switch {
	case v.Kind() == reflect.String:
		return String(v.String())
	case v.CanInt():
		return Int(v.Int(), maxIntWidth)
	case v.CanUint():
		return Uint(v.Uint(), maxUintWidth)
	}
	id, _ := v.Convert(reflect.TypeFor[[16]byte]()).Interface().([16]byte) // the only other Key
	return UUID(id)
}
