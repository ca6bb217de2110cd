// Package tally adds up digests of facts, so that a set of required facts and a set of stored facts can be
// compared in bounded memory, whatever the order in which the facts are read.
package tally

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

// Sum is a 128-bit sum. Facts can be added to it in any order.
type Sum [2]uint64

func (s *Sum) add(f Sum) {
	var carry uint64
	s[0], carry = bits.Add64(s[0], f[0], 0)
	s[1], _ = bits.Add64(s[1], f[1], carry)
}

func (s *Sum) subtract(f Sum) {
	var borrow uint64
	s[0], borrow = bits.Sub64(s[0], f[0], 0)
	s[1], _ = bits.Sub64(s[1], f[1], borrow)
}

// Count adds a required fact, or subtracts a stored one.
func (s *Sum) Count(f Sum, wanted bool) {
	if wanted {
		s.add(f)
		return
	}
	s.subtract(f)
}

// Buckets is the number of sums that share the facts of a run.
const Buckets = 4096

// Sums are the sums of one scan. The zero value is ready to use.
type Sums struct {
	buckets [Buckets]Sum
	Facts   int64 // counted
}

// Count adds a required fact to a bucket, or subtracts a stored one.
func (s *Sums) Count(bucket uint16, value Sum, wanted bool) {
	s.buckets[bucket].Count(value, wanted)
	s.Facts++
}

// Unequal lists the buckets in which required and stored facts differ.
func (s *Sums) Unequal() []uint16 {
	var list []uint16
	for i := range s.buckets {
		if s.buckets[i] != (Sum{}) {
			list = append(list, uint16(i))
		}
	}
	return list
}

const sumSize = 16

// Bytes returns the stored form of sums, nil if there are none.
func (s *Sums) Bytes() []byte {
	if s.Facts == 0 {
		return nil
	}
	out := make([]byte, 0, Buckets*sumSize)
	for i := range s.buckets {
		out = binary.BigEndian.AppendUint64(out, s.buckets[i][1])
		out = binary.BigEndian.AppendUint64(out, s.buckets[i][0])
	}
	return out
}

// Parse is the inverse of Bytes.
func (s *Sums) Parse(text []byte, facts int64) error {
	*s = Sums{Facts: facts}
	if len(text) == 0 && facts == 0 {
		return nil
	}
	if len(text) != Buckets*sumSize || facts <= 0 {
		return errors.New("its sums do not have the size that this build uses")
	}
	for i := range s.buckets {
		s.buckets[i] = Sum{binary.BigEndian.Uint64(text[i*sumSize+8:]), binary.BigEndian.Uint64(text[i*sumSize:])}
	}
	return nil
}
