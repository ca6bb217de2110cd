package interpartition_test

import (
	"context"

	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/tables"
)

// change is one operation of a writer.
type change func(ctx context.Context, repo *patterns.Repository[employee]) error

// changed is Jones after a change of everything: both keys move.
func changed() *employee {
	e := jones()
	e.Name, e.Email, e.Badge = "June Smith", "smithj@contoso.com", "B-2"
	return e
}

// renamed is Jones after a change that keeps her keys.
func renamed() *employee {
	e := jones()
	e.Name = "June Smith"
	return e
}

// smith is a colleague of Jones, ward another.
func smith() *employee {
	return &employee{Department: "Sales", ID: 224, Name: "John Smith", Email: "smith@contoso.com", Badge: "B-9"}
}

func ward() *employee {
	return &employee{Department: "Sales", ID: 225, Name: "Ann Ward", Email: "ward@contoso.com", Badge: "B-7"}
}

// inserts stores an employee.
func inserts(e *employee) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		v := *e
		return repo.Insert(ctx, &v)
	}
}

// becomes makes an employee like another value of it.
func becomes(to *employee) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		_, err := repo.Update(ctx, keyOf(to), func(e *employee) error {
			e.Name, e.Email, e.Badge = to.Name, to.Email, to.Badge
			return nil
		})
		return err
	}
}

// upserts stores an employee whatever there is.
func upserts(e *employee) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		v := *e
		return repo.Upsert(ctx, &v)
	}
}

// goes deletes an employee.
func goes(e *employee) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		return repo.DeleteUnconditional(ctx, keyOf(e))
	}
}

// stage adds a change to a transaction.
type stage func(ctx context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error

// together makes changes of several entities in one transaction.
func together(stages ...stage) change {
	return func(ctx context.Context, repo *patterns.Repository[employee]) error {
		x := repo.Table().NewTransaction()
		for _, stage := range stages {
			if err := stage(ctx, repo, x); err != nil {
				return err
			}
		}
		_, err := x.Commit(ctx)
		return err
	}
}

// stored reads an employee for a transaction.
func stored(of *employee, do func(repo *patterns.Repository[employee], x *tables.Transaction, e *employee)) stage {
	return func(ctx context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error {
		e, err := repo.Get(ctx, keyOf(of))
		if err == nil {
			do(repo, x, e)
		}
		return err
	}
}

// becoming is becomes in a transaction.
func becoming(to *employee) stage {
	return stored(to, func(repo *patterns.Repository[employee], x *tables.Transaction, e *employee) {
		e.Name, e.Email, e.Badge = to.Name, to.Email, to.Badge
		repo.StageReplace(x, e)
	})
}

// going is goes in a transaction.
func going(e *employee) stage { return stored(e, (*patterns.Repository[employee]).StageDelete) }

// inserting is inserts in a transaction.
func inserting(e *employee) stage {
	return func(_ context.Context, repo *patterns.Repository[employee], x *tables.Transaction) error {
		v := *e
		repo.StageInsert(x, &v)
		return nil
	}
}

// keyed returns an employee with the keys of another one.
func keyed(e, like *employee) *employee {
	v := *e
	v.Email, v.Badge = like.Email, like.Badge
	return &v
}
