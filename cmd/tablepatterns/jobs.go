package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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

// addResume, addWrites and addOther add flags.
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
	variable := f.other
	if variable == "" {
		variable = p.connection
	}
	account, err := p.account(variable)
	if err != nil {
		return nil, err
	}
	return account.Table(name), nil
}

// ready creates the destination table if the flag for this is set.
func (f *jobFlags) ready(ctx context.Context, to *tables.Table) error {
	if !f.create || f.dryRun {
		return nil
	}
	return to.CreateIfMissing(ctx)
}

// job is a run of a job of package backup, with its progress display and saved position.
type job struct {
	*program
	command  string
	options  backup.Options
	position *position
	end      func()
}

// begin makes the options of a job from the flags of the command line.
func (p *program) begin(command string, f *jobFlags) (*job, error) {
	at, err := openPosition(command, f.resume)
	if err != nil {
		return nil, err
	}
	j := &job{program: p, command: command, position: at}
	j.options = backup.Options{Partitions: p.partitions, Concurrency: p.concurrency, RowsPerSecond: p.rowsPerSecond, DryRun: f.dryRun, Resume: at.token, Found: j.difference}
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
	j.options.Progress = func(r tables.Report) {
		at.follow(r)
		if show != nil {
			show(r)
		}
	}
	return j, nil
}

// difference prints a difference.
func (j *job) difference(d backup.Difference) error {
	j.position.found++
	_, err := fmt.Fprintln(j.stdout, d)
	return err
}

// finish prints the counts of a job and, if the job has ended early, how to continue it. done names the
// result.
func (j *job) finish(done string, r tables.Report, err error) error {
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
	if r.Resume != "" {
		j.position.token = r.Resume
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
			from, err := p.table(args[0])
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
func (j *job) written(done string, r backup.Result, err error) error {
	err = j.finish(done, r.Report, err)
	if r.Outside > 0 && !j.options.DryRun {
		fmt.Fprintf(j.stderr, "%d rows are index copies in other partitions, whose ETags are new now: run Repair of the Store\n", r.Outside)
	}
	return err
}

// vaultFlags name a vault.
type vaultFlags struct{ folder, container, prefix, connection string }

func (v *vaultFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&v.folder, "folder", "", "`DIRECTORY` with the backups")
	flags.StringVar(&v.container, "container", "", "`NAME` of the blob container with the backups, which exists")
	flags.StringVar(&v.prefix, "prefix", "", "`PATH` in the container")
	flags.StringVar(&v.connection, "vault-connection-env", "", "`NAME` of an environment variable with the connection string of the container's account (default: the same account)")
}

// open opens the vault.
func (p *program) open(v *vaultFlags) (*backup.Vault, error) {
	switch {
	case (v.folder == "") == (v.container == ""):
		return nil, errors.New("give one of --folder and --container, where the backups are")
	case v.folder != "":
		return backup.OpenFolder(v.folder)
	}
	variable := v.connection
	if variable == "" {
		variable = p.connection
	}
	account, err := p.account(variable)
	if err != nil {
		return nil, err
	}
	return backup.OpenContainer(account.Container(v.container), v.prefix)
}

// addBlobs adds the flag for sets of blobs.
func addBlobs(flags *pflag.FlagSet, all *[]string) {
	flags.StringArrayVar(all, "blobs", nil, "a set of blobs that belongs to a table, as `NAME=TABLE,CONTAINER,PREFIX`; repeat for several")
}

// blobSets reads the flag for sets of blobs, in the account of the tables.
func blobSets(account *tables.Account, all []string) ([]backup.BlobSet, error) {
	var sets []backup.BlobSet
	for _, text := range all {
		name, rest, named := strings.Cut(text, "=")
		parts := strings.Split(rest, ",")
		if !named || len(parts) != 3 {
			return nil, fmt.Errorf("--blobs is %q; it must be NAME=TABLE,CONTAINER,PREFIX", text)
		}
		sets = append(sets, backup.BlobSet{Name: name, Table: account.Table(parts[0]), Container: account.Container(parts[1]), Prefix: parts[2]})
	}
	return sets, nil
}

// backupCommand returns the command tablepatterns backup.
func (p *program) backupCommand() *cobra.Command {
	v := &vaultFlags{}
	var base string
	var resume bool
	var blobs []string
	c := &cobra.Command{
		Use:   "backup NAME TABLE...",
		Short: "Back up tables under a new name, in a folder or a container",
		Long: `Back up tables under a new name, in a folder or a container.

An earlier backup of the name is never overwritten. Beside live writers a backup is no snapshot. Rows that cannot be read are printed
and left out; then the exit code is 1.`,
		Example: `  tablepatterns backup monday Orders Customers --folder /backups
  tablepatterns backup tuesday Orders Customers --folder /backups --base monday`,
		Args: cobra.MinimumNArgs(2),
		RunE: func(c *cobra.Command, args []string) (err error) {
			account, err := p.account(p.connection)
			if err != nil {
				return err
			}
			vault, err := p.open(v)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, vault.Close()) }()
			var all []*tables.Table
			for _, name := range args[1:] {
				all = append(all, account.Table(name))
			}
			options := backup.Options{Partitions: p.partitions, Concurrency: p.concurrency, RowsPerSecond: p.rowsPerSecond, Base: base}
			if options.Blobs, err = blobSets(account, blobs); err != nil {
				return err
			}
			if resume {
				if options.Resume, err = vault.Unfinished(c.Context(), args[0]); err != nil {
					return err
				}
			}
			left := 0
			options.Found = p.each(&left)
			show, end := p.progress("backup")
			options.Progress = show
			report, err := vault.Backup(c.Context(), args[0], all, &options)
			end()
			return p.backedUp(report, err, resume, left)
		},
	}
	v.add(c.Flags())
	addBlobs(c.Flags(), &blobs)
	c.Flags().StringVar(&base, "base", "", "`NAME` of an earlier backup there, whose unchanged parts are used again")
	c.Flags().BoolVar(&resume, "resume", false, "go on with a backup of the name that was interrupted; begin if there is none")
	return c
}

// each prints and counts differences.
func (p *program) each(n *int) func(backup.Difference) error {
	return func(d backup.Difference) error {
		*n++
		_, err := fmt.Fprintln(p.stdout, d)
		return err
	}
}

// backedUp prints the counts of a backup and, if it has ended early, how to continue it. left is the number
// of unreadable rows that were printed.
func (p *program) backedUp(report tables.Report, err error, resume bool, left int) error {
	fmt.Fprintf(p.stdout, "backed up: %v\n", report)
	if err != nil && report.Resume != "" {
		fmt.Fprintln(p.stderr, "to go on, repeat the command with --resume")
	}
	if errors.Is(err, tables.ErrExists) && !resume {
		err = fmt.Errorf("%w; to continue an interrupted backup, give --resume", err)
	}
	if err == nil && left > 0 {
		err = errDifferences
	}
	return err
}

// targets returns the tables to restore, from the arguments of the command: TABLE or TABLE=DESTINATION. The
// names do not come from the manifest, since anybody who can write to the vault could forge them.
func (f *jobFlags) targets(ctx context.Context, account *tables.Account, manifest *backup.Manifest, named []string) ([]backup.Target, error) {
	var targets []backup.Target
	for _, each := range named {
		name, to, renamed := strings.Cut(each, "=")
		if !renamed {
			to = name
		}
		if !slices.ContainsFunc(manifest.Tables, func(t backup.TableSummary) bool { return strings.EqualFold(t.Name, name) }) {
			return nil, fmt.Errorf("--table is %q, and the backup has no table of this name; tablepatterns verify lists its tables", each)
		}
		targets = append(targets, backup.Target{Name: name, To: account.Table(to)})
	}
	for _, t := range targets {
		if err := f.ready(ctx, t.To); err != nil {
			return nil, err
		}
	}
	return targets, nil
}

// restoreCommand returns the command tablepatterns restore.
func (p *program) restoreCommand() *cobra.Command {
	v, f := &vaultFlags{}, &jobFlags{}
	var named, blobs []string
	c := &cobra.Command{
		Use:   "restore NAME",
		Short: "Restore tables of a backup",
		Long: `Restore tables of a backup: those of --table, under the same or another name. tablepatterns verify lists the tables of a backup.

Rows that the backup does not have are left alone. A row that is there with the same content counts as unchanged, so the command can be repeated.`,
		Example: `  tablepatterns restore monday --folder /backups --table Orders=OrdersRestored --create
  tablepatterns restore monday --folder /backups --table Orders --table Customers --existing replace`,
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if len(named) == 0 {
				return errors.New("--table is missing; name each table to restore, as TABLE or TABLE=DESTINATION (tablepatterns verify lists the tables of a backup)")
			}
			vault, err := p.open(v)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, vault.Close()) }()
			account, err := p.account(p.connection)
			if err != nil {
				return err
			}
			manifest, err := vault.Manifest(c.Context(), args[0])
			if err != nil {
				return err
			}
			j, err := p.begin("restore", f)
			if err != nil {
				return err
			}
			if j.options.Blobs, err = blobSets(account, blobs); err != nil {
				return err
			}
			targets, err := f.targets(c.Context(), account, manifest, named)
			if err != nil {
				return err
			}
			result, err := vault.Restore(c.Context(), args[0], targets, &j.options)
			if result.Blobs > 0 {
				fmt.Fprintf(p.stdout, "%d blobs written\n", result.Blobs)
			}
			return j.written("restored", result, err)
		},
	}
	v.add(c.Flags())
	f.addResume(c.Flags())
	f.addWrites(c.Flags())
	addBlobs(c.Flags(), &blobs)
	c.Flags().StringArrayVar(&named, "table", nil, "`TABLE` of the backup, or TABLE=DESTINATION; repeat for several")
	return c
}

// scope prints which part of the tables the backup contains.
func (p *program) scope(m *backup.Manifest) {
	if m.Partitions != nil {
		fmt.Fprintf(p.stdout, "only the partitions %q\n", m.Partitions)
	}
	if m.From != (tables.Key{}) || m.Before != (tables.Key{}) {
		fmt.Fprintf(p.stdout, "only the keys from %q up to, and without, %q\n", m.From, m.Before)
	}
}

// verifyCommand returns the command tablepatterns verify.
func (p *program) verifyCommand() *cobra.Command {
	v := &vaultFlags{}
	c := &cobra.Command{
		Use:   "verify NAME",
		Short: "Read a backup whole, and name every damaged file",
		Args:  cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) (err error) {
			if p.partitions != nil || p.rowsPerSecond != 0 {
				return errors.New("verify always reads the whole backup; leave out --partition and --rows-per-second")
			}
			vault, err := p.open(v)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, vault.Close()) }()
			manifest, err := vault.Manifest(c.Context(), args[0])
			if errors.Is(err, tables.ErrGarbled) {
				fmt.Fprintln(p.stdout, "damaged:", err)
				return errDifferences
			}
			if err != nil {
				return err
			}
			p.scope(manifest)
			for _, t := range manifest.Tables {
				fmt.Fprintf(p.stdout, "%s: %d rows, %d bytes, stored in %d chunks of %d bytes\n", t.Name, t.Rows, t.Bytes, t.Chunks, t.Stored)
				if t.Unreadable > 0 {
					fmt.Fprintf(p.stdout, "%s: %d rows could not be read and are not in the backup; the keys of the first are %q\n", t.Name, t.Unreadable, t.UnreadableKeys)
				}
			}
			for _, b := range manifest.Blobs {
				fmt.Fprintf(p.stdout, "%s: %d blobs, %d bytes, stored in %d bytes\n", b.Name, b.Blobs, b.Bytes, b.Stored)
			}
			damaged := 0
			show, end := p.progress("verify")
			report, err := vault.Verify(c.Context(), args[0], &backup.Options{Partitions: p.partitions, Concurrency: p.concurrency, RowsPerSecond: p.rowsPerSecond, Progress: show, Found: p.each(&damaged)})
			end()
			fmt.Fprintf(p.stdout, "verified: %v\n", report)
			if damaged > 0 && errors.Is(err, tables.ErrGarbled) {
				return errDifferences
			}
			return err
		},
	}
	v.add(c.Flags())
	return c
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
				first, err := p.table(args[0])
				if err != nil {
					return err
				}
				report, err := backup.Compare(c.Context(), first, second, &j.options)
				return j.finish("compared", report, err)
			}
			vault, err := p.open(v)
			if err != nil {
				return err
			}
			defer func() { err = errors.Join(err, vault.Close()) }()
			report, err := vault.Compare(c.Context(), name, args[0], second, &j.options)
			return j.finish("compared", report, err)
		},
	}
	v.add(c.Flags())
	f.addResume(c.Flags())
	f.addOther(c.Flags(), "OTHER")
	c.Flags().StringVar(&name, "backup", "", "`NAME` of the backup that has TABLE")
	return c
}
