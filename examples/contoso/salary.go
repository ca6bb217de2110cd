package main

import (
	"context"
	"crypto/rand"
	"fmt"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/encryption"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Confidential is what nobody but the program is to read of an employee.
type Confidential struct {
	tables.Meta
	Department string
	ID         int
	Name       string
	NationalID string `encrypt:"true"`
	Salary     int64  `encrypt:"true"`
}

// confidentialRecord is what two of them must have in common to be the same.
type confidentialRecord struct {
	department, name, nationalID string
	id                           int
	salary                       int64
}

func (e *Confidential) record() confidentialRecord {
	return confidentialRecord{e.Department, e.Name, e.NationalID, e.ID, e.Salary}
}

func newConfidential(e *Employee) *Confidential {
	return &Confidential{Department: e.Department, ID: e.ID, Name: e.FirstName + " " + e.LastName,
		NationalID: fmt.Sprintf("%03d-%02d-%04d", 100+e.ID%900, 10+e.ID*7%90, 1000+e.ID*13%9000), Salary: int64(e.Salary)}
}

// nationalIDBits is how much of the hash of a national id the index has: so little that some employees have the same, and the
// index tells nobody for sure whose id it is.
const nationalIDBits = 8

// confidentials are employees with what is encrypted, found by national id. Every program has them, with a registry of its own.
type confidentials struct {
	repo         *patterns.Repository[Confidential]
	byNationalID *intrapartition.Index[Confidential]
	beacon       encryption.Beacon
}

func openConfidentials(ctx context.Context, table *tables.Table, registry *encryption.Registry) (*confidentials, error) {
	x := &confidentials{}
	var err error
	if x.beacon, err = registry.Beacon(ctx, "nationalid", nationalIDBits); err != nil {
		return nil, err
	}
	x.byNationalID = intrapartition.NewIndex("nationalid", func(e *Confidential) compoundkey.Part {
		return compoundkey.Tuple(x.beacon.Part(tables.String(e.NationalID)), id(e.ID))
	}, nil)
	x.repo, err = patterns.NewRepository(table, patterns.Schema[Confidential]{
		Key:  func(e *Confidential) tables.Key { return employeeKey(e.Department, e.ID) },
		Rows: compoundkey.Starting("empid"),
	}, encryption.New[Confidential]("encryption", registry, nil), x.byNationalID)
	return x, err
}

// havingBeacon is the span of the index with the employees who may have a national id.
func (x *confidentials) havingBeacon(nationalID string) compoundkey.Span {
	return compoundkey.Exactly(x.beacon.Part(tables.String(nationalID)))
}

// newWrappingKey makes a key that wraps data keys. On Azure, encryption.NewVaultKey has one that never leaves Key Vault.
func newWrappingKey(name string) (encryption.KeyWrapper, error) {
	key := make([]byte, 32)
	_, _ = rand.Read(key) // never an error
	return encryption.NewLocalKey(name, key)
}
