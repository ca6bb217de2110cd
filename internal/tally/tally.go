// Package tally has what the reports of long jobs have in common: the counts from which the jobs make them, and their text.
package tally

import (
	"fmt"
	"reflect"
	"strings"
	"time"
	"unicode"
)

// Report counts what a job has done. Each public report has those of its fields that its job uses.
type Report struct {
	Read, Rows, Transactions, Written, Deleted, Unchanged, Conflicts, Failed int64
	Candidates, Findings, Repaired, Marked                                   int64

	Unmatched      string
	PartitionsDone int
	Estimate       int64
	ETA, Elapsed   time.Duration
	Resume         string
}

// String formats the counts that are not 0.
func (r Report) String() string { return Text(r) }

// Into sets the fields of *to, a struct, to those of the struct from that have the same names, also in structs that *to embeds.
func Into(from, to any) { into(reflect.ValueOf(from), reflect.ValueOf(to).Elem()) }

func into(from, to reflect.Value) {
	for i := range to.NumField() {
		if field := to.Type().Field(i); field.Anonymous {
			into(from, to.Field(i))
		} else if of := from.FieldByName(field.Name); of.IsValid() {
			to.Field(i).Set(of)
		}
	}
}

// Of returns a report of type R with the counts of from, a struct. It passes err on.
func Of[R any](from any, err error) (R, error) {
	var report R
	Into(from, &report)
	return report, err
}

// Text formats the counts of a report that are not 0, without Resume, which may be long.
func Text(report any) string {
	v := reflect.ValueOf(report)
	parts := counts(nil, v)
	if unmatched := v.FieldByName("Unmatched"); unmatched.IsValid() && unmatched.String() != "" {
		parts = append(parts, "no row of the table is an entity of "+unmatched.String())
	}
	if v.FieldByName("Resume").String() != "" {
		parts = append(parts, "to be resumed")
	}
	if len(parts) == 0 {
		parts = []string{"nothing"}
	}
	elapsed := time.Duration(v.FieldByName("Elapsed").Int())
	return fmt.Sprintf("%s in %v", strings.Join(parts, ", "), elapsed.Round(time.Millisecond))
}

func counts(parts []string, v reflect.Value) []string {
	for i := range v.NumField() {
		switch field := v.Type().Field(i); {
		case field.Anonymous:
			parts = counts(parts, v.Field(i))
		case field.Type.Kind() == reflect.Int64 && field.Type != reflect.TypeFor[time.Duration]() && v.Field(i).Int() != 0:
			parts = append(parts, fmt.Sprintf("%d %s", v.Field(i).Int(), words(field.Name)))
		}
	}
	return parts
}

// words returns a field's name in lower case, such as "left out" for LeftOut.
func words(name string) string {
	var b strings.Builder
	for i, c := range name {
		if unicode.IsUpper(c) && i > 0 {
			b.WriteByte(' ')
		}
		b.WriteRune(unicode.ToLower(c))
	}
	return b.String()
}
