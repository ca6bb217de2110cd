package composition

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/relationships"
	"github.com/tablepatterns/tablepatterns/tables"
)

// consistent checks everything that is stored: each item of now is found by its key and by each index and list, and is
// counted. No item of before is found.
func (d *desk) consistent(ctx context.Context, now, before []*item) error {
	var errs []error
	for _, v := range now {
		errs = append(errs, d.isThere(ctx, v))
	}
	for _, v := range before {
		errs = append(errs, d.isGone(ctx, v))
	}
	return errors.Join(append(errs, d.counts(ctx, now), d.holds(ctx, now))...)
}

func (d *desk) isThere(ctx context.Context, v *item) error {
	got, err := d.items.Get(ctx, plainKey(v))
	byName, nameErr := d.name.In(v.Site).Get(ctx, byName(v))
	whole, wholeErr := d.number.In(v.Site).GetFull(ctx, d.office.beacon.Part(tables.String(v.Number)))
	lean, leanErr := d.number.In(v.Site).Get(ctx, d.office.beacon.Part(tables.String(v.Number)))
	badge, badgeErr := d.badge.In(v.Site).Get(ctx, compoundkey.Tuple(compoundkey.String(v.Name), compoundkey.Int(v.ID, 6)))
	if err := errors.Join(err, nameErr, wholeErr, leanErr, badgeErr); err != nil {
		return err
	}
	if lean.Number != v.Number || lean.Essay != "" || badge.Number != v.Number || !bytes.Equal(badge.Photo, v.Photo) || badge.Essay != "" {
		return fmt.Errorf("the lean copies are %.300s and %.300s", fmt.Sprint(lean), fmt.Sprint(badge))
	}
	errs := []error{sameItem(got, v), sameItem(byName, v), sameItem(whole, v)}
	for name, list := range d.lists(ctx, v) {
		found, err := collect(list)
		if errs = append(errs, err); len(found) != 1 {
			errs = append(errs, fmt.Errorf("%s has %d", name, len(found)))
			continue
		}
		errs = append(errs, sameItem(found[0], v))
	}
	return errors.Join(errs...)
}

// lists are where an item is one of those that share something, and here the only one.
func (d *desk) lists(ctx context.Context, v *item) map[string]iter.Seq2[*item, error] {
	project, _ := projectOf(v)
	return map[string]iter.Seq2[*item, error]{
		"the list in the partition": d.team.In(v.Site).Find(ctx, compoundkey.String(v.Team), nil), "the list outside": d.teams.In(v.Site).Find(ctx, compoundkey.String(v.Team), nil),
		"the project": d.members.All(ctx, project),
	}
}

func collect[V any](all iter.Seq2[V, error]) (found []V, err error) {
	for v, err := range all {
		if err != nil {
			return found, err
		}
		found = append(found, v)
	}
	return found, nil
}

// isGone checks that nothing is found by what an item had.
func (d *desk) isGone(ctx context.Context, v *item) error {
	_, name := d.name.In(v.Site).Get(ctx, byName(v))
	_, number := d.number.In(v.Site).Get(ctx, d.office.beacon.Part(tables.String(v.Number)))
	_, badge := d.badge.In(v.Site).Get(ctx, byName(v))
	for _, err := range []error{name, number, badge} {
		if !errors.Is(err, tables.ErrNotFound) {
			return fmt.Errorf("%s is still found: %w", v.Name, errors.Join(name, number, badge, errors.New("one is")))
		}
	}
	project, _ := projectOf(v)
	team, teamErr := d.team.In(v.Site).Keys(ctx, compoundkey.String(v.Team))
	teams, teamsErr := d.teams.In(v.Site).Keys(ctx, compoundkey.String(v.Team))
	n, membersErr := d.members.Count(ctx, project)
	if err := errors.Join(teamErr, teamsErr, membersErr); err != nil || len(team)+len(teams) > 0 || n != 0 {
		return fmt.Errorf("the lists of %s have %v, %v and %d, %w", v.Name, team, teams, n, err)
	}
	return nil
}

// counts checks the numbers.
func (d *desk) counts(ctx context.Context, now []*item) error {
	n, err := d.count.Get(ctx, theSite)
	parent, parentErr := d.sites.Get(ctx, siteKey(theSite, "counted"))
	if err = errors.Join(err, parentErr); err != nil {
		return err
	}
	if n != int64(len(now)) || parent.Items != len(now) {
		return fmt.Errorf("%d items are counted as %d and %d", len(now), n, parent.Items)
	}
	lengths, sum := relationships.Aggregate{}, int64(0)
	if lengths, err = d.lengths.Get(ctx, theSite, ""); err != nil {
		return err
	}
	for _, v := range now {
		sum += int64(len(v.Team))
	}
	if lengths.Count != n || lengths.Sum != sum {
		return fmt.Errorf("the teams of %d items have %d characters, and are summed up as %+v", n, sum, lengths)
	}
	for _, v := range now {
		project, _ := projectOf(v)
		if n, err := d.members.Count(ctx, project); err != nil || n != 1 {
			return fmt.Errorf("the project of %s has %d members, %w", v.Name, n, err)
		}
	}
	return nil
}

// holds checks the details of the chief, the first item, with those who hold them.
func (d *desk) holds(ctx context.Context, now []*item) error {
	want := ""
	for _, v := range now {
		if v.ID == 1 {
			want = v.Name
		}
	}
	beside, err := d.sites.Get(ctx, siteKey(theSite, "beside"))
	away, awayErr := d.holders.Get(ctx, siteKey("away", "chief"))
	if err = errors.Join(err, awayErr); err != nil {
		return err
	}
	if beside.ChiefName != want || away.ChiefName != want {
		return fmt.Errorf("the chief is %q, and the holders have %q and %q", want, beside.ChiefName, away.ChiefName)
	}
	return nil
}
