package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/data/aztables"

	"github.com/tablepatterns/tablepatterns/access"
	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Appraisal is a year's review of an employee, for her to read and to comment.
type Appraisal struct {
	tables.Meta
	Department       string
	ID, Year, Rating int
	Comment          string
}

func (a *Appraisal) key() tables.Key {
	return tables.Key{Partition: a.Department, Row: compoundkey.Join("empid", id(a.ID), compoundkey.Int(a.Year, 4))}
}

func newAppraisals(table *tables.Table) *patterns.Repository[Appraisal] {
	return must(patterns.NewRepository(table, patterns.Schema[Appraisal]{Key: (*Appraisal).key, Rows: compoundkey.Starting("empid")}))
}

// ownRows gives an employee her own rows, and nobody else's, by a token that a server signs.
// Guide: "Controlling access with Shared Access Signatures".
func ownRows() scenario {
	const years = 3 // of each employee
	return scenario{
		title: "An employee reads her own rows",
		guide: "Controlling access with Shared Access Signatures",
		plain: "a server asks for her, with the account's key",
		shows: []show{{"Shared access signatures", "her appraisals", "", "she reads her own rows, and no other"}},
		open: func(s *scene) func(context.Context) {
			all := newAppraisals(s.store.Table("Appraisals"))
			return func(ctx context.Context) {
				signer := must(access.NewSignerFromConnectionString(s.place.connection, &access.SignerOptions{Now: s.place.now}))
				var stored []*Appraisal
				for _, e := range s.of(sales) {
					for year := 2012; year < 2012+years; year++ {
						stored = append(stored, &Appraisal{Department: sales, ID: e.ID, Year: year, Rating: 1 + (e.ID+year)%5})
					}
				}
				importing(ctx, all, stored)
				token := must(signer.Sign(access.Grant{Table: all.Table().Name(), Range: access.Rows(sales, compoundkey.Starting("empid", id(jones))),
					Permissions: access.Query | access.Update, Lifetime: time.Hour, InsecureHTTP: strings.HasPrefix(s.account.Endpoints().Table, "http:")}))
				s.tell("The token, printed:", token.String())

				// She gets the token's address, which goes into no log, and opens it in a program of her own.
				client := must(access.Open(must(access.Parse(token.RevealAddress())), &tables.AccountOptions{ClientOptions: s.clientOptions()}))
				own := newAppraisals(client.Table())
				ask(ctx, s, "her appraisals",
					query(own.Query().Partition(sales).Rows(compoundkey.Starting("empid", id(jones)))),
					query(all.Query().Partition(sales).Where(tables.Eq("ID", jones))).through(len(stored)))
				hers := must(own.Get(ctx, (&Appraisal{Department: sales, ID: jones, Year: 2012}).key()))
				hers.Comment = "I agree."
				s.act("her comment written", "the token lets her update", func() error { return own.Replace(ctx, hers) })
				another := (&Appraisal{Department: sales, ID: reviewed, Year: 2012}).key()
				s.refused("a colleague's appraisal read", access.ErrOutside, func() error { _, err := own.Get(ctx, another); return err })
				s.refused("her own appraisal deleted", access.ErrNotPermitted, func() error { return own.Delete(ctx, hers) })

				// Those two were refused by her own program. The service does, too.
				status := bareGet(ctx, s, token.RevealAddress(), another)
				s.check(status == http.StatusForbidden, "the service answers the SDK with %d", status)
				if s.place.emulator == "azurite" {
					s.tell("Azurite does not look at a token's range of keys: storagetest.Strict, in front of it, does.")
				}
			}
		},
	}
}

// bareGet reads a row by the SDK, and returns the status of the answer. Its errors are not told: they could hold the address.
func bareGet(ctx context.Context, s *scene, address string, key tables.Key) int {
	client, err := aztables.NewClientWithNoCredential(address, &aztables.ClientOptions{ClientOptions: s.clientOptions()})
	s.check(err == nil, "the SDK does not take the token's address")
	_, err = client.GetEntity(ctx, key.Partition, key.Row, nil)
	if answer := (*azcore.ResponseError)(nil); errors.As(err, &answer) {
		return answer.StatusCode
	}
	return http.StatusOK
}

// Confidential is what nobody but the program is to read of an employee.
type Confidential struct {
	tables.Meta
	Department string
	ID         int
	NationalID string `encrypt:"true"`
	Salary     int64  `encrypt:"true"`
}

// confidentials are employees with what is encrypted, found by national id. Every program has them, with a registry of its own.
type confidentials struct {
	repo         *patterns.Repository[Confidential]
	byNationalID *intrapartition.Index[Confidential]
	beacon       encryption.Beacon
}

func openConfidentials(ctx context.Context, table *tables.Table, registry *encryption.Registry) *confidentials {
	// 8 bits of a keyed hash: some employees have the same, so the index tells nobody for sure whose id it is.
	x := &confidentials{beacon: must(registry.Beacon(ctx, "nationalid", 8))}
	x.byNationalID = intrapartition.NewIndex("nationalid", func(e *Confidential) compoundkey.Part {
		return compoundkey.Tuple(x.beacon.Part(tables.String(e.NationalID)), id(e.ID))
	}, nil)
	x.repo = must(patterns.NewRepository(table, patterns.Schema[Confidential]{
		Key: func(e *Confidential) tables.Key { return employeeKey(e.Department, e.ID) }, Rows: compoundkey.Starting("empid"),
	}, encryption.New[Confidential]("encryption", registry, nil), x.byNationalID))
	return x
}

// newWrappingKey makes a key that wraps data keys. On Azure, encryption.NewVaultKey has one that never leaves Key Vault.
func newWrappingKey(name string) encryption.KeyWrapper {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never an error
	return must(encryption.NewLocalKey(name, key))
}

// salaries keeps salaries and national ids so that only the program can read them. Guide: "Encrypting Table Data".
func salaries() scenario {
	return scenario{
		title: "Salaries and national ids, encrypted",
		guide: "Encrypting Table Data",
		plain: "the department read whole, and decrypted",
		shows: []show{{"Encryption", "one national id in Sales", "", "nothing in clear; keys are rotated"}},
		open: func(s *scene) func(context.Context) {
			table, keys := s.store.Table("Confidential"), s.store.Table("DataKeys")
			before, after := newWrappingKey("2025"), newWrappingKey("2026")
			registry := must(encryption.NewRegistry(keys, encryption.NewChain(before, after), nil)) // wraps by the first, unwraps by both
			return func(ctx context.Context) {
				must(registry.CreateDataKey(ctx))
				try(registry.CreateBeacon(ctx, "nationalid"))
				people := openConfidentials(ctx, table, registry)
				var staff []*Confidential
				for _, e := range s.of(sales) {
					staff = append(staff, &Confidential{Department: sales, ID: e.ID, Salary: int64(e.Salary),
						NationalID: fmt.Sprintf("%03d-%02d-%04d", 100+e.ID%900, 10+e.ID*7%90, 1000+e.ID*13%9000)})
				}
				s.write("employees of Sales inserted, encrypted", "each with a copy by a keyed hash of the national id", func() error {
					_, err := people.repo.BulkNonAtomic(ctx, each(staff), nil)
					return err
				})
				june := staff[0]
				has := func(e *Confidential) bool { return e.NationalID == june.NationalID }
				candidates := people.byNationalID.Query(compoundkey.Exactly(people.beacon.Part(tables.String(june.NationalID)))).Partition(sales)
				matching := func(q tables.Query[Confidential], rows int) way[Confidential] {
					return sequence(tables.RangeQuery, func(ctx context.Context) iter.Seq2[*Confidential, error] {
						return encryption.Matching(q.All(ctx), has)
					}).through(rows)
				}
				ask(ctx, s, "one national id in Sales",
					matching(candidates, len(must(collect(candidates.All(ctx))))),
					matching(people.repo.Query().Partition(sales), len(staff)))

				for row, err := range table.Entities().Query().AllowTableScan().All(ctx) {
					try(err)
					for _, name := range []string{"NationalID", "Salary"} {
						_, binary := row.Get(name).Bytes()
						s.check(binary, "%s is stored in clear", name)
					}
				}
				rotate(ctx, s, table, keys, before, after)
			}
		},
	}
}

// rotate changes the wrapping key, which touches no employee, and the data key, under which all are encrypted again.
func rotate(ctx context.Context, s *scene, table, keys *tables.Table, before, after encryption.KeyWrapper) {
	both := must(encryption.NewRegistry(keys, encryption.NewChain(after, before), nil))
	s.write("the wrapping key rotated", "the data key and the key of the beacon are wrapped again", func() error {
		_, err := both.Rewrap(ctx)
		return err
	})
	registry := must(encryption.NewRegistry(keys, after, nil)) // without the old wrapping key
	must(registry.CreateDataKey(ctx))
	people := openConfidentials(ctx, s.account.Table(table.Name()), registry) // in another program
	var done tables.Report
	s.write("a new data key, and all encrypted again", "", func() (err error) {
		done, err = encryption.Reencrypt(ctx, people.repo, nil)
		return err
	}).says("%s of %s", grouped(int(done.Written)), counted(int(done.Read), "employee"))
	uses := must(encryption.Uses(ctx, table))
	for key, err := range registry.DataKeys(ctx) {
		try(err)
		s.check(key.Current == (uses[key.ID] > 0), "a data key that is current: %v, has %d uses", key.Current, uses[key.ID])
	}
}
