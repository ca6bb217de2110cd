package compoundkey_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
)

// The keys of the guide, as the guide prints them.
func ExampleJoin() {
	fmt.Println(compoundkey.Join("", compoundkey.Int(123, 8)))
	fmt.Println(compoundkey.Join("empid", compoundkey.Int(223, 6)))
	fmt.Println(compoundkey.Join("", compoundkey.Int(123, 6), compoundkey.Int(2012, 4)))
	fmt.Println(compoundkey.Join("email", compoundkey.String("jonesj@contoso.com")))
	fmt.Println(compoundkey.Join("lastname", compoundkey.String("Jones"), compoundkey.Int(223, 6)))
	// Output:
	// 00000123
	// empid_000223
	// 000123_2012
	// email_jonesj@contoso.com
	// lastname_Jones!_000223
}

// Characters that a key cannot hold survive, in their place in the order.
func ExampleString() {
	fmt.Println(compoundkey.Join("", compoundkey.String("Sales & Marketing")))
	fmt.Println(compoundkey.Join("", compoundkey.String(`C#?\_`)))
	fmt.Println(compoundkey.Join("", compoundkey.String("O'Brien")))
	// Output:
	// Sales!s&0!sMarketing
	// C"1>1[1^1
	// O&1Brien
}

// Join can be used in an expression; an error travels in the key.
func ExampleErr() {
	key := compoundkey.Join("empid", compoundkey.Int(1234567, 6))
	err := compoundkey.Err(key)
	fmt.Println(err)
	fmt.Println(errors.Is(err, compoundkey.ErrInvalidKey))
	var detail *compoundkey.Error
	if errors.As(err, &detail) {
		fmt.Println(detail.Part, detail.Kind)
	}
	// Output:
	// compoundkey: part 0 (Int): the value needs 7 digits, but the width is 6; use a larger width
	// true
	// 0 Int
}

func ExampleParse() {
	var id, year int
	err := compoundkey.Parse("000123_2012", "", compoundkey.ToInt(&id, 6), compoundkey.ToInt(&year, 4))
	fmt.Println(id, year, err)
	// Output: 123 2012 <nil>
}

// All reviews of employee 123, as the guide asks for them.
func ExampleStarting() {
	span := compoundkey.Starting("empid", compoundkey.Int(123, 6))
	fmt.Printf("RowKey ge '%s' and RowKey lt '%s'\n", span.From(), span.To())
	fmt.Println(span.Contains("empid_000123"), span.Contains("empid_000123_2012"), span.Contains("empid_000124"))
	all := compoundkey.Starting("empid") // every employee's: the prefix, '_' and at least one part
	fmt.Println(all.Contains("empid_000123"), all.Contains("empidx_1"), all.Contains("empid"))
	// Output:
	// RowKey ge 'empid_000123' and RowKey lt 'empid_000124'
	// true true false
	// true false false
}

// An index puts the caller's span behind its own name.
func ExampleSpan_Under() {
	for _, span := range []compoundkey.Span{
		compoundkey.Prefix("a").Under("email"),
		compoundkey.All().Under("email"),
		compoundkey.Between("a", "d").Under("email"),
		compoundkey.Prefix("Jo").Under("name", compoundkey.Bool(true)),
	} {
		fmt.Println(span.From(), span.To())
	}
	// Output:
	// email_a email_b
	// email_ email`
	// email_a email_d
	// name_1_Jo name_1_Jp
}

func ExampleTimeDesc() {
	day := time.Date(2012, 12, 31, 0, 0, 0, 0, time.UTC)
	fmt.Println(compoundkey.Join("", compoundkey.Time(day)))
	fmt.Println(compoundkey.Join("", compoundkey.TimeDesc(day)))
	// Output:
	// 0634925088000000000
	// 2520453887999999999
}

func ExampleNewEnum() {
	status := compoundkey.NewEnum(2, "draft", "open", "closed")
	key := compoundkey.Join("status", status.Part("open"), compoundkey.Int(7, 4))
	fmt.Println(key)

	var name string
	var id int
	fmt.Println(compoundkey.Parse(key, "status", status.To(&name), compoundkey.ToInt(&id, 4)), name, id)
	// Output:
	// status_01_0007
	// <nil> open 7
}

// An index function returns one Part; Tuple makes one of several.
func ExampleTuple() {
	name := compoundkey.Tuple(compoundkey.String("Jones"), compoundkey.String("Jr."))
	fmt.Println(compoundkey.Join("name", name, compoundkey.Int(223, 6)))
	// Output: name_Jones!_Jr.!_000223
}
