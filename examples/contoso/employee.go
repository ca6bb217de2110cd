package main

import (
	"time"

	"github.com/tablepatterns/tablepatterns/compoundkey"
	"github.com/tablepatterns/tablepatterns/intrapartition"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// Employee is the guide's entity: its partition is the department, its row the employee's id.
type Employee struct {
	tables.Meta
	Department string
	ID         int
	FirstName  string
	LastName   string
	Email      string
	Age        int
	Salary     int
	HireDate   time.Time
}

// record is what two Employees must have in common to be the same.
type record struct {
	department, firstName, lastName, email string
	id, age, salary                        int
	hired                                  int64
}

func (e *Employee) record() record {
	return record{e.Department, e.FirstName, e.LastName, e.Email, e.ID, e.Age, e.Salary, e.HireDate.UnixNano()}
}

// unwritten returns the employee without Meta, as if it was never read or written.
func (e *Employee) unwritten() *Employee {
	twin := *e
	twin.Meta = tables.Meta{}
	return &twin
}

// named is the record of an Employee read through the index by name, which keeps less.
func (e *Employee) named() record {
	return record{department: e.Department, firstName: e.FirstName, lastName: e.LastName, id: e.ID}
}

func id(n int) compoundkey.Part { return compoundkey.Int(n, 6) }

// indexes are the further orders in which employees of a department can be found.
type indexes struct {
	email, name, hired *intrapartition.Index[Employee]
}

// newEmployees is the table with patterns: four rows an employee, which the repository keeps consistent.
func newEmployees(table *tables.Table) (*patterns.Repository[Employee], *indexes, error) {
	x := &indexes{
		email: intrapartition.NewIndex("email", func(e *Employee) compoundkey.Part {
			return compoundkey.String(e.Email)
		}, nil),
		name: intrapartition.NewIndex("name", func(e *Employee) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.String(e.LastName), compoundkey.String(e.FirstName), id(e.ID))
		}, &intrapartition.Options{Project: []string{"Department", "ID", "FirstName", "LastName"}}),
		hired: intrapartition.NewIndex("hired", func(e *Employee) compoundkey.Part {
			return compoundkey.Tuple(compoundkey.Time(e.HireDate), id(e.ID))
		}, nil),
	}
	repo, err := patterns.NewRepository(table, patterns.Schema[Employee]{
		Key:  func(e *Employee) tables.Key { return employeeKey(e.Department, e.ID) },
		Rows: compoundkey.Starting("empid"),
	}, x.email, x.name, x.hired)
	return repo, x, err
}

func employeeKey(department string, n int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("empid", id(n))}
}

// newPlain is the table as one would make it first: one row an employee, found by department and id.
func newPlain(table *tables.Table) (*patterns.Repository[Employee], error) {
	return patterns.NewRepository(table, patterns.Schema[Employee]{
		Key: func(e *Employee) tables.Key { return plainKey(e.Department, e.ID) },
	})
}

func plainKey(department string, n int) tables.Key {
	return tables.Key{Partition: department, Row: compoundkey.Join("", id(n))}
}
