package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tablepatterns/tablepatterns/backup"
	"github.com/tablepatterns/tablepatterns/blobstorage"
	"github.com/tablepatterns/tablepatterns/tables"
)

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
	account, err := p.account(cmp.Or(v.connection, p.connection))
	if err != nil {
		return nil, err
	}
	return backup.OpenContainer(blobstorage.Container(account, v.container), v.prefix)
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
		sets = append(sets, backup.BlobSet{Name: name, Table: account.Table(parts[0]), Container: blobstorage.Container(account, parts[1]), Prefix: parts[2]})
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

An earlier backup of the name is never overwritten. Beside live writers a backup is no snapshot. Rows that cannot be read, or that no table
of the service stores, are printed and left out; then the exit code is 1.`,
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
			left := int64(0)
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

// backedUp prints the counts of a backup and, if it has ended early, how to continue it. left is the number
// of rows that were printed, which are left out.
func (p *program) backedUp(report backup.Report, err error, resume bool, left int64) error {
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

// targets returns the tables to restore, each named as TABLE or TABLE=DESTINATION on the command line. It takes no name from the manifest,
// which anybody who can write to the vault could forge.
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
			return j.written("restored", result.CopyReport, err)
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
			if p.partitions != nil || p.rowsPerSecond != 0 || p.concurrency != 0 {
				return errors.New("verify reads the whole backup as fast as it can; leave out --partition, --rows-per-second and --concurrency")
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
				if t.LeftOut > 0 {
					fmt.Fprintf(p.stdout, "%s: %d rows were left out of the backup; the keys of the first are %q\n", t.Name, t.LeftOut, t.LeftOutKeys)
				}
			}
			for _, b := range manifest.Blobs {
				fmt.Fprintf(p.stdout, "%s: %d blobs, %d bytes, stored in %d bytes\n", b.Name, b.Blobs, b.Bytes, b.Stored)
			}
			found := int64(0)
			show, end := p.progress("verify")
			report, err := vault.Verify(c.Context(), args[0], &backup.Options{Concurrency: p.concurrency, Progress: show, Found: p.each(&found)})
			end()
			fmt.Fprintf(p.stdout, "verified: %v\n", report)
			if found > 0 && (err == nil || errors.Is(err, tables.ErrGarbled)) {
				return errDifferences
			}
			return err
		},
	}
	v.add(c.Flags())
	return c
}
