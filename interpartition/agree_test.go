package interpartition_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/internal/harness"
	"github.com/tablepatterns/tablepatterns/internal/lease"
	"github.com/tablepatterns/tablepatterns/internal/marks"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// known are the keys and names that occur in a test.
type known struct{ emails, badges, names []string }

// everybody are those of the employees, and of nobody.
func everybody(all ...*employee) *known {
	k := &known{emails: []string{"nobody"}, badges: []string{"nobody"}, names: []string{"nobody"}}
	for _, e := range all {
		k.emails, k.badges, k.names = append(k.emails, e.Email), append(k.badges, e.Badge), append(k.names, e.Name)
	}
	for _, list := range []*[]string{&k.emails, &k.badges, &k.names} {
		slices.Sort(*list)
		*list = slices.DeleteFunc(slices.Compact(*list), func(s string) bool { return s == "" })
	}
	return k
}

// view is how one index is read.
type view struct {
	name    string
	index   *either[employee]
	keys    []string
	keyOf   func(*employee) string
	text    func(*employee) string // what a read of the index shows
	spread  bool
	members []*employee // those in the index
}

// wholeText is all of an employee, shortText what the index of badges shows.
func wholeText(e *employee) string { return fmt.Sprint(e.Key(), textOf(e), e.ETag) }
func shortText(e *employee) string { return fmt.Sprint(e.Key(), e.Name) }

// agree returns an error unless each way to read the indexes gives exactly what the entities' own rows say. Nobody writes meanwhile.
func (w *world) agree(ctx context.Context, p *process, k *known) error {
	all, err := p.everybody(ctx)
	if err != nil {
		return err
	}
	for _, v := range []view{
		{"email", p.email.In("Sales"), k.emails, func(e *employee) string { return e.Email }, wholeText, w.spread, nil},
		{"badge", p.badge, k.badges, func(e *employee) string { return e.Badge }, shortText, w.spread, nil},
	} {
		for _, e := range all {
			if v.keyOf(e) != "" {
				v.members = append(v.members, e)
			}
		}
		slices.SortStableFunc(v.members, func(a, b *employee) int { return compoundkey.Compare(v.keyOf(a), v.keyOf(b)) })
		if err := errors.Join(v.points(ctx), v.ranges(ctx, k)); err != nil {
			return fmt.Errorf("index %s, where the rows say %q: %w", v.name, texts(all, wholeText), err)
		}
	}
	return nil
}

func texts(all []*employee, text func(*employee) string) (found []string) {
	for _, e := range all {
		found = append(found, text(e))
	}
	return found
}

// those returns what is to be read of the members that meet a condition.
func (v *view) those(meets func(*employee) bool) []string {
	return texts(slices.DeleteFunc(slices.Clone(v.members), func(e *employee) bool { return !meets(e) }), v.text)
}

// points reads each key.
func (v *view) points(ctx context.Context) error {
	for _, key := range v.keys {
		want := v.those(func(e *employee) bool { return v.keyOf(e) == key })
		first, part := want[:min(1, len(want))], compoundkey.String(key)
		if err := errors.Join(same("Get "+key, first, gotten(v.index.Get(ctx, part)), v.text), same("GetFull "+key, first, gotten(v.index.GetFull(ctx, part)), v.text),
			same("All "+key, want, v.index.All(ctx, part), v.text)); err != nil {
			return err
		}
	}
	return nil
}

// ranges reads spans, and with conditions that some states of the entities meet and others do not.
func (v *view) ranges(ctx context.Context, k *known) error {
	middle := v.keys[len(v.keys)/2]
	below := func(e *employee) bool { return compoundkey.Compare(v.keyOf(e), middle) < 0 }
	lower := compoundkey.Below(compoundkey.String(middle))
	failures := []error{
		same("Range", v.those(func(*employee) bool { return true }), v.index.Range(ctx), v.text),
		same("Range below "+middle, v.those(below), v.index.Range(ctx, lower), v.text),
	}
	for _, name := range k.names {
		want := v.those(func(e *employee) bool { return e.Name == name })
		query := v.index.Query().Where(tables.Eq("Name", name))
		if v.spread {
			slices.Sort(want)
			failures = append(failures, same("Query "+name, want, sorted(query.AllowTableScan().All(ctx), v.text), v.text))
			continue
		}
		failures = append(failures, same("Query "+name, want, query.All(ctx), v.text), same("First "+name, want[:min(1, len(want))], gotten(query.First(ctx)), v.text),
			same("Top and Select of "+name, want[:min(1, len(want))], query.Top(1).Select("Name").All(ctx), shortText))
	}
	return errors.Join(failures...)
}

// same reads to the end, and compares.
func same(read string, want []string, all iter.Seq2[*employee, error], text func(*employee) string) error {
	var got []string
	for e, err := range all {
		if err != nil {
			return fmt.Errorf("%s: %w", read, err)
		}
		got = append(got, text(e))
	}
	for i := range want {
		if strings.HasPrefix(read, "Top and") { // whose projection is the shorter one
			want[i], _, _ = strings.Cut(want[i], " <")
		}
	}
	if !slices.Equal(got, want) {
		return fmt.Errorf("%s gives %q, want %q", read, got, want)
	}
	return nil
}

// sorted yields all in the order of their texts.
func sorted(all iter.Seq2[*employee, error], text func(*employee) string) iter.Seq2[*employee, error] {
	return func(yield func(*employee, error) bool) {
		var read []*employee
		for e, err := range all {
			if err != nil {
				yield(nil, err)
				return
			}
			read = append(read, e)
		}
		slices.SortFunc(read, func(a, b *employee) int { return strings.Compare(text(a), text(b)) })
		for _, e := range read {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// agreesAlways returns an error unless every reader is right now, before anything is repaired, and after all marks have expired; unless Verify finds
// nothing then; and unless Repair leaves no mark.
func (w *world) agreesAlways(ctx context.Context, s *storagetest.Service, k *known) error {
	for _, after := range []time.Duration{0, marks.Term + marks.Grace + time.Second} {
		s.Wait(after)
		p, err := w.agreesNow(ctx, s, k)
		if err != nil {
			return fmt.Errorf("after %v: %w", after, err)
		}
		if after == 0 {
			continue
		}
		if err := harness.Clean(ctx, p.repo.Verify, nil); err != nil {
			return err
		}
		if _, err := p.repo.Repair(lease.Waive(ctx, lease.Terms), nil); err != nil {
			return err
		}
		if n, err := p.marked(ctx); err != nil || n > 0 {
			return fmt.Errorf("after Repair %d rows are marked: %w", n, err)
		}
		if err := w.agree(ctx, p, k); err != nil {
			return fmt.Errorf("after Repair: %w", err)
		}
	}
	return nil
}

// agreesNow starts a process, all of whose readers must agree, and stops it.
func (w *world) agreesNow(ctx context.Context, s *storagetest.Service, k *known) (*process, error) {
	p, err := w.start(s)
	if err != nil {
		return nil, err
	}
	return p, errors.Join(w.agree(ctx, p, k), p.close(ctx))
}

// everybody reads all entities.
func (p *process) everybody(ctx context.Context) (all []*employee, err error) {
	for e, err := range p.repo.Query().AllowTableScan().All(ctx) {
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}
