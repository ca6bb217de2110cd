package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/tables"
)

// jobFlags are the flags of commands that run a job of package backup.
type jobFlags struct {
	resume   string // name of the file with the position of an earlier run
	existing string
	create   bool
	dryRun   bool
	other    string // environment variable with the connection string of the second account
}

func (f *jobFlags) addResume(flags *pflag.FlagSet) {
	flags.StringVar(&f.resume, "resume", "", "`FILE` for the position: read if it exists, written while the job runs, removed at the end")
}

func (f *jobFlags) addWrites(flags *pflag.FlagSet) {
	flags.StringVar(&f.existing, "existing", "refuse", "a row that exists with other content: refuse (end there), skip (leave it), replace (overwrite it)")
	flags.BoolVar(&f.create, "create", false, "create the destination if it does not exist")
	flags.BoolVar(&f.dryRun, "dry-run", false, "write nothing: count, and print the rows that exist with other content")
}

func (f *jobFlags) addOther(flags *pflag.FlagSet, what string) {
	flags.StringVar(&f.other, "to-connection-env", "", "`NAME` of an environment variable with the connection string of the account of "+what+" (default: the same account)")
}

// second opens the second table of a command.
func (p *program) second(f *jobFlags, name string) (*tables.Table, error) {
	return p.table(cmp.Or(f.other, p.connection), name)
}

// ready creates the destination table if --create is given.
func (f *jobFlags) ready(ctx context.Context, to *tables.Table) error {
	if !f.create || f.dryRun {
		return nil
	}
	return to.CreateIfMissing(ctx)
}

// job is one run of a job of package backup.
type job struct {
	*program
	options  backup.Options
	position *position
	end      func() // ends the display of the progress
}

// begin makes the options of a job from the flags of the command line.
func (p *program) begin(command string, f *jobFlags) (*job, error) {
	at, err := openPosition(command, f.resume)
	if err != nil {
		return nil, err
	}
	j := &job{program: p, position: at}
	j.options = backup.Options{Partitions: p.partitions, Concurrency: p.concurrency, RowsPerSecond: p.rowsPerSecond, DryRun: f.dryRun, Resume: at.token, Found: p.each(&at.found)}
	switch f.existing {
	case "", "refuse":
	case "skip":
		j.options.Existing = backup.SkipExisting
	case "replace":
		j.options.Existing = backup.ReplaceExisting
	default:
		return nil, fmt.Errorf("--existing is %q; it must be refuse, skip or replace", f.existing)
	}
	show, end := p.progress(command)
	j.end = end
	j.options.Progress = func(r tables.Progress) {
		at.follow(r)
		if show != nil {
			show(r)
		}
	}
	return j, nil
}

// each returns a function that prints differences and counts them in n.
func (p *program) each(n *int64) func(backup.Difference) error {
	return func(d backup.Difference) error {
		*n++
		_, err := fmt.Fprintln(p.stdout, d)
		return err
	}
}

// finish prints what the job has done and its counts, and removes the saved position. If the job has ended early, it saves the position
// instead and prints how to continue.
func (j *job) finish(done string, r fmt.Stringer, resume string, err error) error {
	j.end()
	fmt.Fprintf(j.stdout, "%s: %v\n", done, r)
	if err == nil {
		if err := errors.Join(j.position.failed, j.position.done()); err != nil {
			return err
		}
		if j.position.found > 0 {
			return errDifferences
		}
		return nil
	}
	if resume != "" {
		j.position.token = resume
	}
	advice, kept := j.position.keep()
	if kept != nil {
		return errors.Join(err, kept)
	}
	fmt.Fprintln(j.stderr, advice)
	return err
}

// copyCommand returns the command tablepatterns copy.
func (p *program) copyCommand() *cobra.Command {
	f := &jobFlags{}
	c := &cobra.Command{
		Use:   "copy TABLE DESTINATION",
		Short: "Copy the rows of a table into another one, of any account",
		Long: `Copy the rows of a table into another one, with all properties as they are.

A row that is there with the same content counts as unchanged, so the command can be repeated. Beside live writers a copy is no snapshot.`,
		Example: `  tablepatterns copy Orders OrdersCopy --create
  tablepatterns copy Orders Orders --to-connection-env OTHER_ACCOUNT --resume orders.resume`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			from, err := p.table(p.connection, args[0])
			if err != nil {
				return err
			}
			to, err := p.second(f, args[1])
			if err != nil {
				return err
			}
			j, err := p.begin("copy", f)
			if err != nil {
				return err
			}
			if err := f.ready(c.Context(), to); err != nil {
				return err
			}
			result, err := backup.Copy(c.Context(), from, to, &j.options)
			return j.written("copied", result, err)
		},
	}
	f.addResume(c.Flags())
	f.addWrites(c.Flags())
	f.addOther(c.Flags(), "the destination")
	return c
}

// written does what finish does, for a job that writes rows.
func (j *job) written(done string, r backup.CopyReport, err error) error {
	err = j.finish(done, r, r.Resume, err)
	if r.Outside > 0 && !j.options.DryRun {
		fmt.Fprintf(j.stderr, "%d rows are index copies in other partitions: reads through them cost 1 request more until Rebuild of the repository\n", r.Outside)
	}
	return err
}

// compareCommand returns the command tablepatterns compare.
func (p *program) compareCommand() *cobra.Command {
	v, f := &vaultFlags{}, &jobFlags{}
	var name string
	c := &cobra.Command{
		Use:   "compare TABLE OTHER",
		Short: "Compare two tables, or a table of a backup with a table",
		Long: `Compare two tables, or with --backup a table of the backup with a table: print each row that differs, without values.

The exit code is 0 if they are equal, and 1 if they differ. ETag and Timestamp are not compared.`,
		Example: `  tablepatterns compare Orders OrdersCopy
  tablepatterns compare Orders Orders --backup monday --folder /backups`,
		Args: cobra.ExactArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			second, err := p.second(f, args[1])
			if err != nil {
				return err
			}
			j, err := p.begin("compare", f)
			if err != nil {
				return err
			}
			if name == "" {
				first, err := p.table(p.connection, args[0])
				if err != nil {
					return err
				}
				report, err := backup.Compare(c.Context(), first, second, &j.options)
				return j.finish("compared", report, report.Resume, err)
			}
			vault, err := p.open(v)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, vault.Close()) }()
			report, err := vault.Compare(c.Context(), name, args[0], second, &j.options)
			return j.finish("compared", report, report.Resume, err)
		},
	}
	v.add(c.Flags())
	f.addResume(c.Flags())
	f.addOther(c.Flags(), "OTHER")
	c.Flags().StringVar(&name, "backup", "", "`NAME` of the backup that has TABLE")
	return c
}
