package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
	"github.com/tablepatterns/tablepatterns/tables"
)

// ownRows gives an employee her own rows, and nobody else's.
func ownRows() scenario {
	return scenario{
		title: "An employee reads her own rows",
		guide: "Controlling access with Shared Access Signatures",
		shows: []show{
			{"Shared access signatures", "her appraisals", "", "she reads her own rows, and no other"},
		},
		run: func(ctx context.Context, c *company, s *section) error {
			d, err := c.openDesk(ctx)
			if errors.Is(err, access.ErrNoSharedKey) {
				s.Text = append(s.Text, "Nothing was signed: "+err.Error())
				return nil
			}
			if err != nil {
				return err
			}
			s.Plain = "a server asks for her, with the account's key"
			return steps(ctx, s, d.load, d.sign, d.askForOwn, d.use, d.refuse, d.refuseBare, d.issue)
		},
	}
}

// Appraisal is a year's review of an employee, for her to read and to comment.
type Appraisal struct {
	tables.Meta
	Department string
	ID, Year   int
	Rating     int
	Comment    string
}

// appraisalRecord is what two Appraisals must have in common to be the same.
type appraisalRecord struct {
	department, comment string
	id, year, rating    int
}

func (a *Appraisal) record() appraisalRecord {
	return appraisalRecord{a.Department, a.Comment, a.ID, a.Year, a.Rating}
}

func (a *Appraisal) key() tables.Key {
	return tables.Key{Partition: a.Department, Row: compoundkey.Join("empid", id(a.ID), compoundkey.Int(a.Year, 4))}
}

func newAppraisals(table *tables.Table) (*patterns.Repository[Appraisal], error) {
	return patterns.NewRepository(table, patterns.Schema[Appraisal]{Key: (*Appraisal).key, Rows: compoundkey.Starting("empid")})
}

// desk is the appraisals of everybody, on a server that signs, and what June Jones has of them.
type desk struct {
	c      *company
	signer *access.Signer
	all    *patterns.Repository[Appraisal]
	years  int // of each employee
	others int // appraisals in her department that are not hers

	token access.Token
	own   *patterns.Repository[Appraisal] // through her token
	last  *Appraisal                      // of hers, as she has read it
}

func (c *company) openDesk(ctx context.Context) (*desk, error) {
	d := &desk{c: c, years: 3}
	var err error
	if d.signer, err = access.NewSignerFromConnectionString(c.place.connection, &access.SignerOptions{Now: c.place.now}); err != nil {
		return nil, err
	}
	table, err := c.table(ctx, "Appraisals")
	if err != nil {
		return nil, err
	}
	d.all, err = newAppraisals(table)
	return d, err
}

func (d *desk) load(ctx context.Context, _ *section) error {
	var all []*Appraisal
	for _, e := range d.c.staff[:minEmployees] {
		if e.Department == sales && e.ID != jones {
			d.others += d.years
		}
		for year := 2012; year < 2012+d.years; year++ {
			all = append(all, &Appraisal{Department: e.Department, ID: e.ID, Year: year, Rating: 1 + (e.ID+year)%5})
		}
	}
	_, err := d.all.BulkNonAtomic(ctx, each(all), nil)
	return err
}

// grant is what an employee of Sales may: read her own appraisals, and write into them.
func (d *desk) grant(n int) access.Grant {
	return access.Grant{Table: d.all.Table().Name(), Range: access.Rows(sales, compoundkey.Starting("empid", id(n))),
		Permissions: access.Query | access.Update, Lifetime: time.Hour, InsecureHTTP: d.c.emulated()}
}

// emulated reports whether the service is an emulator's, which has no TLS.
func (c *company) emulated() bool { return strings.HasPrefix(c.account.Endpoints().Table, "http:") }

// holder has the options of a program that holds a token. What is counted is what goes out: a request that the program's
// own client refuses does not.
func (c *company) holder() *tables.AccountOptions {
	options := c.place.options
	if options.Transport == nil {
		options.Transport = http.DefaultClient
	}
	options.Transport = storagetest.NewFaults(options.Transport, c.requests)
	return &tables.AccountOptions{ClientOptions: options}
}

// open is what the holder of a token does.
func (d *desk) open(token access.Token) (*patterns.Repository[Appraisal], error) {
	client, err := access.Open(token, d.c.holder())
	if err != nil {
		return nil, err
	}
	return newAppraisals(client.Table())
}

// sign makes June Jones's token on the server, and opens it where she is.
func (d *desk) sign(_ context.Context, s *section) error {
	if err := d.c.act(s, "a token signed and opened", func() (string, error) {
		token, err := d.signer.Sign(d.grant(jones))
		if err != nil {
			return "", err
		}
		if d.token, err = access.Parse(token.RevealAddress()); err != nil { // to her, and into no log
			return "", err
		}
		d.own, err = d.open(d.token)
		return "to query and update her rows, for an hour", err
	}); err != nil {
		return err
	}
	s.Text = append(s.Text, "The token, printed:", d.token.String())
	if d.c.place.emulator == "azurite" {
		s.Text = append(s.Text, "Azurite does not look at a token's range of keys: storagetest.Strict, in front of it, does.")
	}
	return nil
}

// askForOwn asks for all that she may see; without a token, a server looks for it in the department.
func (d *desk) askForOwn(ctx context.Context, s *section) error {
	with, err := answering(d.own.Query().Partition(sales).Rows(compoundkey.Starting("empid", id(jones))))
	if err != nil {
		return err
	}
	without, err := answering(d.all.Query().Partition(sales).Where(tables.Eq("ID", jones)))
	if err != nil {
		return err
	}
	without.searched = d.years + d.others
	return ask(ctx, d.c, s, asked[Appraisal, appraisalRecord]{text: "her appraisals", with: with, without: without, record: (*Appraisal).record})
}

// use does what the token is for.
func (d *desk) use(ctx context.Context, s *section) error {
	if err := d.c.act(s, "the whole department asked for", func() (string, error) {
		found := 0
		for a, err := range d.own.Query().Partition(sales).All(ctx) {
			if err != nil {
				return "", err
			}
			if a.ID != jones {
				return "", fmt.Errorf("she can read an appraisal of employee %d", a.ID)
			}
			d.last = a
			found++
		}
		if found != d.years {
			return "", fmt.Errorf("%d appraisals of %d", found, d.years)
		}
		return fmt.Sprintf("her %s, and none of the %d others", counted(found, "appraisal"), d.others), nil
	}); err != nil {
		return err
	}
	return d.c.act(s, "her comment written", func() (string, error) {
		d.last.Comment = "I agree."
		if err := d.own.Replace(ctx, d.last); err != nil {
			return "", err
		}
		got, err := d.all.Get(ctx, d.last.key())
		if err != nil || got.record() != d.last.record() {
			return "", fmt.Errorf("her comment is not there: %w", err)
		}
		return "and read on the server", nil
	})
}

// colleague is a row that she must not read.
func (d *desk) colleague() tables.Key {
	return (&Appraisal{Department: sales, ID: reviewed, Year: 2012}).key()
}

// refuse does what the token is not for. Her own program knows, and sends nothing.
func (d *desk) refuse(ctx context.Context, s *section) error {
	for _, x := range []struct {
		what string
		do   func() error
		want error
	}{
		{"a colleague's appraisal read", func() error { _, err := d.own.Get(ctx, d.colleague()); return err }, access.ErrOutside},
		{"another department asked for", func() error { _, err := d.own.Query().Partition("Legal").First(ctx); return err }, access.ErrOutside},
		{"her own appraisal deleted", func() error { return d.own.Delete(ctx, d.last) }, access.ErrNotPermitted},
		{"one of the next year inserted", func() error {
			return d.own.Insert(ctx, &Appraisal{Department: sales, ID: jones, Year: 2012 + d.years})
		}, access.ErrNotPermitted},
	} {
		if err := d.c.act(s, x.what, func() (string, error) {
			if err := x.do(); !errors.Is(err, x.want) || !errors.Is(err, tables.ErrDenied) {
				return "", fmt.Errorf("it was not refused: %w", err)
			}
			return "refused: " + x.want.Error(), nil
		}); err != nil {
			return err
		}
	}
	return nil
}

// refuseBare has the service refuse it, too: with the SDK alone, and an address that somebody has changed.
func (d *desk) refuseBare(ctx context.Context, s *section) error {
	wide, err := widened(d.token.RevealAddress())
	if err != nil {
		return err
	}
	yesterday, err := access.NewSignerFromConnectionString(d.c.place.connection, &access.SignerOptions{Now: func() time.Time { return d.c.now().Add(-24 * time.Hour) }})
	if err != nil {
		return err
	}
	expired, err := yesterday.Sign(d.grant(jones))
	if err != nil {
		return err
	}
	for _, x := range []struct {
		what, address string
		key           tables.Key
		want          int
	}{
		{"her own, by the bare SDK", d.token.RevealAddress(), d.last.key(), http.StatusOK},
		{"a colleague's, by the bare SDK", d.token.RevealAddress(), d.colleague(), http.StatusForbidden},
		{"a colleague's, the range taken out", wide, d.colleague(), http.StatusForbidden},
		{"her own, with the token of yesterday", expired.RevealAddress(), d.last.key(), http.StatusForbidden},
	} {
		if err := d.c.act(s, x.what, func() (string, error) {
			status, err := d.c.bareGet(ctx, x.address, x.key)
			if err == nil && status != x.want {
				err = fmt.Errorf("the service answers %d, it should be %d", status, x.want)
			}
			return fmt.Sprintf("the service answers %d", status), err
		}); err != nil {
			return err
		}
	}
	return nil
}

// widened takes the range out of a token's address. It stays signed.
func widened(address string) (string, error) {
	path, query, _ := strings.Cut(address, "?")
	var kept []string
	for field := range strings.SplitSeq(query, "&") {
		switch name, _, _ := strings.Cut(field, "="); name {
		case "spk", "srk", "epk", "erk":
		default:
			kept = append(kept, field)
		}
	}
	if len(kept) != strings.Count(query, "&")+1-4 {
		return "", errors.New("the token has no range of rows")
	}
	return path + "?" + strings.Join(kept, "&"), nil
}

// bareGet reads a row by the SDK, and returns the answer's status. Its errors are not told: they could hold the address.
func (c *company) bareGet(ctx context.Context, address string, key tables.Key) (status int, _ error) {
	client, err := aztables.NewClientWithNoCredential(address, &aztables.ClientOptions{ClientOptions: c.clientOptions()})
	if err != nil {
		return 0, errors.New("the SDK does not take the token's address")
	}
	_, err = client.GetEntity(ctx, key.Partition, key.Row, nil)
	if err == nil {
		return http.StatusOK, nil
	}
	if answer := (*azcore.ResponseError)(nil); errors.As(err, &answer) {
		return answer.StatusCode, nil
	}
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	return 0, errors.New("the service did not answer")
}

// now is the service's time, as far as it is known.
func (c *company) now() time.Time {
	if c.place.now != nil {
		return c.place.now()
	}
	return time.Now()
}

// issue has the tokens of several users made as they come.
func (d *desk) issue(ctx context.Context, s *section) error {
	users := map[string]int{"june": jones, "a colleague": reviewed}
	issuer, err := access.NewIssuer(d.signer, func(_ context.Context, user string) (access.Grant, error) {
		n, known := users[user]
		if !known {
			return access.Grant{}, tables.ErrDenied
		}
		return d.grant(n), nil
	}, nil)
	if err != nil {
		return err
	}
	return d.c.act(s, "tokens asked for by users", func() (string, error) {
		for user, n := range users {
			first, err := issuer.Token(ctx, user)
			if err != nil {
				return "", err
			}
			again, err := issuer.Token(ctx, user)
			if err != nil || again.RevealQuery() != first.RevealQuery() || !first.Range().Contains((&Appraisal{Department: sales, ID: n, Year: 2012}).key()) {
				return "", fmt.Errorf("%s got another token the second time, or not one for the own rows: %w", user, err)
			}
		}
		if _, err := issuer.Token(ctx, "somebody else"); !errors.Is(err, tables.ErrDenied) {
			return "", fmt.Errorf("somebody else was not refused: %w", err)
		}
		return fmt.Sprintf("%d made, and kept for the next time; somebody else refused", issuer.Len()), nil
	})
}
