package encryption_test

import (
	"bytes"
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/patterns/driver"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// edited is intact with a mask over the bytes from at on, and without its last bytes, or with further ones.
func edited(intact []byte, at uint16, mask []byte, cut int8) []byte {
	b := bytes.Clone(intact)
	for i, m := range mask {
		b[(int(at)+i)%len(b)] ^= m
	}
	if cut > 0 {
		return b[:max(0, len(b)-int(cut))]
	}
	return append(b, make([]byte, -int(cut))...)
}

// FuzzEncryptedRow changes the stored values of a row: nothing but what was written is read, whole or in part, by one error, and no
// input makes it panic. What is fuzzed is the change and not the bytes: each process that fuzzes has keys of its own, under which the
// bytes of another one are never right.
func FuzzEncryptedRow(f *testing.F) {
	a := loaderIn(f, worldOn(f, storagetest.Simulator(f, nil)), "Employees", nil)
	p := a.stored(f, aKey, text("A", "a secret"), tables.Property{Name: "B", Value: tables.Int64(42)}, text("S", "signed"))
	intact := func(name string) []byte { b, _ := p.Get(name).Bytes(); return b }
	value, other, seal := intact("A"), intact("B"), intact(encryption.SealProperty)
	const own, exchanged, swapped, foreign = 0, 1, 2, 3
	f.Add(uint8(own), uint16(0), []byte{}, int8(0), uint16(0), []byte{}, int8(0), "signed")
	f.Add(uint8(exchanged), uint16(0), []byte{}, int8(0), uint16(0), []byte{}, int8(0), "signed")
	f.Add(uint8(own), uint16(0), []byte{}, int8(0), uint16(0), []byte{}, int8(0), "changed")
	f.Add(uint8(own), uint16(60), []byte{1}, int8(0), uint16(100), []byte{}, int8(40), "")
	f.Add(uint8(swapped), uint16(0), []byte{}, int8(0), uint16(0), []byte{}, int8(0), "signed")
	f.Add(uint8(foreign), uint16(0), []byte("TPE\x01"), int8(0), uint16(0), []byte("TPE\x01\x02"), int8(0), "x")
	f.Add(uint8(own), uint16(70), []byte{0}, int8(0), uint16(len(seal)-8), []byte{0}, int8(0), "signed") // one mutation from a wrong MAC
	f.Fuzz(func(t *testing.T, from uint8, valueAt uint16, valueMask []byte, valueCut int8, sealAt uint16, sealMask []byte, sealCut int8, signed string) {
		gotValue, gotSeal := valueMask, sealMask
		switch from % 4 {
		case own:
			gotValue, gotSeal = edited(value, valueAt, valueMask, valueCut), edited(seal, sealAt, sealMask, sealCut)
		case exchanged:
			gotValue, gotSeal = edited(other, valueAt, valueMask, valueCut), edited(seal, sealAt, sealMask, sealCut)
		case swapped:
			gotValue, gotSeal = edited(seal, valueAt, valueMask, valueCut), edited(value, sealAt, sealMask, sealCut)
		}
		named, signedNames, copies, ok := encryption.ParseSeal(gotSeal)
		if ok && (2*named+18*signedNames+16*copies > len(gotSeal)) {
			t.Fatalf("a seal of %d bytes names %d, %d and %d things", len(gotSeal), named, signedNames, copies)
		}
		changed := with(with(with(p, "A", tables.Binary(gotValue)), encryption.SealProperty, tables.Binary(gotSeal)), "S", tables.String(signed))
		same := bytes.Equal(gotValue, value) && bytes.Equal(gotSeal, seal) && signed == "signed"
		for _, of := range []driver.Reading{allOf(aKey), partOf(aKey)} {
			read, err := a.Load(t.Context(), of, changed)
			if same != (err == nil) || err != nil && !errors.Is(err, encryption.ErrNotAuthentic) {
				t.Fatalf("read %v, %v; the same: %v", read, err, same)
			}
		}
		if read, err := a.Load(t.Context(), partOf(aKey), without(changed, encryption.SealProperty)); err == nil {
			t.Fatalf("without its seal %v is read", read)
		}
		if proven, _ := a.Authentication.ProvesCopy(t.Context(), partOf(aKey), a.table, aKey, changed); proven {
			t.Fatal("a copy is proven that the entity does not have")
		}
	})
}

// FuzzRegistryRow changes the row of a data key and the one that names it: of rows that were read so, the registry hands out the key
// that was put there, as they were, or an error that nothing else can be, and never another key. They are not stored, so that a run
// of some seconds tries many.
func FuzzRegistryRow(f *testing.F) {
	w := worldOn(f, storagetest.Simulator(f, nil))
	id, key := w.dataKey(f)
	row := bag(f, w.keys, tables.Key{Partition: "datakeys", Row: "key_" + id.String()})
	current := bag(f, w.keys, tables.Key{Partition: "datakeys", Row: "current"})
	made, _ := row.Get("Created").Time()
	since, _ := current.Get("Since").Time()
	wrapped, check, currentCheck := octetsOf(row, "Wrapped"), octetsOf(row, "Check"), octetsOf(current, "Check")
	intact := encryption.RegistryRows{Row: row.Key.Row, Wrapped: wrapped, WrappedBy: "local", Algorithm: "A256KW", State: "active", Check: check, Created: time.UnixMilli(made.UnixMilli()).UTC(),
		DataKey: id.String(), Since: time.UnixMilli(since.UnixMilli()).UTC(), CurrentCheck: currentCheck}
	f.Add(intact.Row, wrapped, "local", "A256KW", "active", check, made.UnixMilli(), id.String(), since.UnixMilli(), currentCheck)
	f.Add(intact.Row, wrapped, "local", "A256KW", "retired", check, made.UnixMilli(), id.String(), since.UnixMilli(), currentCheck)
	f.Add(intact.Row, check, "rsa", "RSA-OAEP", "", wrapped, int64(-1), "00", int64(0), []byte{})
	f.Add(intact.Row, wrapped, "local", "A256KW", "", check, made.UnixMilli(), id.String(), since.UnixMilli(), []byte{})
	f.Fuzz(func(t *testing.T, rowKey string, wrapped []byte, by, algorithm, state string, check []byte, created int64, names string, since int64, currentCheck []byte) {
		got := encryption.RegistryRows{Row: rowKey, Wrapped: wrapped, WrappedBy: by, Algorithm: algorithm, State: state, Check: check, Created: time.UnixMilli(created).UTC(),
			DataKey: names, Since: time.UnixMilli(since).UTC(), CurrentCheck: currentCheck}
		lower := got
		lower.DataKey = strings.ToLower(names) // hexadecimal digits name one key either way
		same := reflect.DeepEqual(lower, intact)
		handed, octets, err := w.open(t, w.wrapper, nil).OpenRows(t.Context(), &got)
		switch {
		case err == nil && (!same || handed != id || !bytes.Equal(octets, key)):
			t.Fatalf("the registry hands out %s", handed)
		case err != nil && same:
			t.Fatal(err)
		case err != nil && !errors.Is(err, tables.ErrWiring) && !errors.Is(err, tables.ErrGarbled):
			t.Fatalf("%v is neither invalid nor garbled", err)
		}
	})
}

func octetsOf(e *tables.Entity, name string) []byte {
	b, _ := e.Get(name).Bytes()
	return b
}
