package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
	Ref
	Year, Rating int
	Comment      string
}

func (a *Appraisal) key() tables.Key {
	return tables.Key{Partition: a.Department, Row: compoundkey.Join("empid", id(a.ID), compoundkey.Int(a.Year, 4))}
}

func newAppraisals(table *tables.Table) *patterns.Repository[Appraisal] {
	return must(patterns.NewRepository(table, schemaOf("empid", (*Appraisal).key)))
}

// ownRows gives an employee access to her own rows only, by a token that a server signs.
func ownRows(s *scene) func(context.Context) {
	all := newAppraisals(s.store.Table("Appraisals"))
	return func(ctx context.Context) {
		signer := must(access.NewSignerFromConnectionString(s.place.connection, &access.SignerOptions{Now: s.place.now}))
		var stored []*Appraisal
		for _, e := range s.of(sales) {
			for year := 2012; year <= 2014; year++ {
				stored = append(stored, &Appraisal{Ref: e.Ref, Year: year, Rating: 1 + (e.ID+year)%5})
			}
		}
		load(ctx, all, stored)
		rows := compoundkey.Starting("empid", id(jones))
		token := must(signer.Sign(access.Grant{Table: all.Table().Name(), Range: access.Rows(sales, rows), Permissions: access.Query | access.Update,
			Lifetime: time.Hour, InsecureHTTP: strings.HasPrefix(s.account.Endpoints().Table, "http:")}))
		s.tell("The token, printed:", token.String())

		// She gets the token's address, which goes into no log, and opens it in a program of her own.
		client := must(access.Open(must(access.Parse(token.RevealAddress())), &tables.AccountOptions{ClientOptions: s.clientOptions()}))
		own := newAppraisals(client.Table())
		ask(s, "her appraisals",
			query(ctx, own.Query().Partition(sales).Rows(rows)),
			query(ctx, all.Query().Partition(sales).Where(tables.Eq("ID", jones))).through(len(stored)))
		hers := must(own.Get(ctx, (&Appraisal{Ref: Ref{sales, jones}, Year: 2012}).key()))
		hers.Comment = "I agree."
		s.act("her comment written", "the token lets her update", func() { try(own.Replace(ctx, hers)) })
		another := (&Appraisal{Ref: Ref{sales, reviewed}, Year: 2012}).key()
		s.refused("a colleague's appraisal read", access.ErrOutside, func() { must(own.Get(ctx, another)) })
		s.refused("her own appraisal deleted", access.ErrNotPermitted, func() { try(own.Delete(ctx, hers)) })

		// Her own program refused those two. The service refuses them, too. Errors are not told: they could hold the address.
		bare, err := aztables.NewClientWithNoCredential(token.RevealAddress(), &aztables.ClientOptions{ClientOptions: s.clientOptions()})
		s.check(err == nil, "the SDK does not take the token's address")
		_, err = bare.GetEntity(ctx, another.Partition, another.Row, nil)
		answer, _ := errors.AsType[*azcore.ResponseError](err)
		s.check(answer != nil && answer.StatusCode == http.StatusForbidden, "the service does not refuse the SDK with 403")
		if s.place.emulator == "azurite" {
			s.tell("Azurite does not look at a token's range of keys: storagetest.Strict, in front of it, does.")
		}
	}
}

// Confidential is what only the program may read of an employee.
type Confidential struct {
	tables.Meta
	Ref
	NationalID string `encrypt:"true"`
	Salary     int64  `encrypt:"true"`
}

// openConfidentials opens the employees with what is encrypted, found by national id. Every program does, with a registry of its own.
func openConfidentials(ctx context.Context, table *tables.Table, registry *encryption.Registry) (*patterns.Repository[Confidential], *intrapartition.Index[Confidential, compoundkey.Part], *encryption.Beacon) {
	// 8 bits of a keyed hash: some employees have the same, so the index tells nobody for sure whose id it is.
	beacon := must(registry.Beacon("nationalid", 8))
	try(beacon.Ensure(ctx))
	byNationalID := intrapartition.NewIndex("nationalid", func(e *Confidential) compoundkey.Part { return beacon.Part(tables.String(e.NationalID)) }, nil)
	encrypted := encryption.New[Confidential]("encryption", registry, nil)
	return must(patterns.NewRepository(table, schemaOf("empid", (*Confidential).key), encrypted, byNationalID)), byNationalID, beacon
}

// newKey makes a random key.
func newKey() []byte {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never an error
	return key
}

// salaries keeps salaries and national ids so that only the program can read them.
func salaries(s *scene) func(context.Context) {
	table, keys := s.store.Table("Confidential"), s.store.Table("DataKeys")
	// On Azure, encryption.NewVaultKey has wrapping keys that never leave Key Vault.
	before, after := must(encryption.NewLocalKey("2025", newKey())), must(encryption.NewLocalKey("2026", newKey()))
	registry := must(encryption.NewRegistry(keys, encryption.NewChain(before, after), nil)) // wraps by the first, unwraps by both
	return func(ctx context.Context) {
		must(registry.CreateDataKey(ctx))
		people, byNationalID, beacon := openConfidentials(ctx, table, registry)
		var staff []*Confidential
		for _, e := range s.of(sales) {
			nationalID := fmt.Sprintf("%03d-%02d-%04d", 100+e.ID%900, 10+e.ID*7%90, 1000+e.ID*13%9000)
			staff = append(staff, &Confidential{Ref: e.Ref, NationalID: nationalID, Salary: int64(e.Salary)})
		}
		s.write("employees of Sales inserted, encrypted", "each with a copy by a keyed hash of the national id", func() {
			load(ctx, people, staff)
		})
		wanted := staff[0].NationalID
		candidates := byNationalID.Query(compoundkey.Exactly(beacon.Part(tables.String(wanted)))).Partition(sales)
		matching := func(q tables.Query[Confidential], rows int) way[Confidential] {
			return list(tables.RangeQuery, func() []*Confidential {
				return collect(encryption.Matching(q.All(ctx), func(e *Confidential) bool { return e.NationalID == wanted }))
			}).through(rows)
		}
		ask(s, "one national id in Sales",
			matching(candidates, len(collect(candidates.All(ctx)))),
			matching(people.Query().Partition(sales), len(staff)))

		for _, row := range collect(table.Entities().Query().AllowTableScan().All(ctx)) {
			for _, name := range []string{"NationalID", "Salary"} {
				_, binary := row.Get(name).Bytes()
				s.check(binary, "%s is stored in clear", name)
			}
		}
		// A new wrapping key touches no employee. Under a new data key all are encrypted again.
		both := must(encryption.NewRegistry(keys, encryption.NewChain(after, before), nil))
		s.write("the wrapping key rotated", "the data key and the key of the beacon are wrapped again", func() { must(both.Rewrap(ctx)) })
		rotated := must(encryption.NewRegistry(keys, after, nil)) // without the old wrapping key
		must(rotated.CreateDataKey(ctx))
		people, _, _ = openConfidentials(ctx, s.account.Table(table.Name()), rotated) // in another program
		var done patterns.RewriteReport
		s.write("a new data key, and all encrypted again", "", func() {
			done = must(encryption.Reencrypt(ctx, people, nil))
		}).says("%s of %s", grouped(int(done.Written)), counted(int(done.Read), "employee"))
		uses := must(encryption.Uses(ctx, table))
		for _, key := range collect(rotated.DataKeys(ctx)) {
			s.check(key.Current == (uses[key.ID] > 0), "a data key that is current: %v, has %d uses", key.Current, uses[key.ID])
		}
	}
}
