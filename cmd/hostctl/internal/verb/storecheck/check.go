// Package storecheck is hostctl store: what an operator asks of a store itself.
package storecheck

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/store"
)

// NewCommand makes the noun with its verbs.
func NewCommand(env *verb.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Check a store, and explain its records"}
	cmd.AddCommand(newCheck(env), newExplain(env))
	return cmd
}

// report is what came of all records. A record that could not be looked at has an error.
type report struct {
	Store    store.Description `json:"store"`
	Records  []record          `json:"records"`
	Damaged  int               `json:"damaged"`
	ExitCode exit.Code         `json:"exit_code"`
}

type record struct {
	store.CheckReport
	Error *string `json:"error"`
}

func (r record) damaged() bool { return len(r.Findings) > 0 || r.Error != nil }

func newCheck(env *verb.Env) *cobra.Command {
	var url string
	output := cli.NewFormat(cli.Text, cli.JSON)
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Verify every checksum and chain link of a store",
		Long: `Check reads every record whole and verifies each checksum and each link of its
chain. It changes nothing. Damage is exit code 17. Torn tails that were never
acknowledged are shown and are no damage.`,
		Example: "  hostctl store check\n  hostctl store check --store fs:/srv/loophost --output json",
		Args:    verb.Exactly(),
	}
	verb.StoreFlag(cmd.Flags(), &url)
	cmd.Flags().VarP(output, "output", "o", "what stdout gets")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		env.Format = output.Value
		s, d, err := env.OpenStore(cmd.Context(), env.StoreURL(url))
		if err != nil {
			return err
		}
		r, err := check(cmd.Context(), s, d)
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
		return r.print(env, output.Value)
	}
	return cmd
}

func check(ctx context.Context, s store.Store, d store.Description) (report, error) {
	r := report{Store: d, Records: []record{}}
	checker, ok := s.(store.Checker)
	if !ok {
		return r, &store.Error{Op: "check", Kind: store.ErrUnsupported, Detail: "the store " + d.Name + " can't verify its records"}
	}
	for _, kind := range []store.Kind{store.KindSession, store.KindScope} {
		for cursor, more := "", true; more; more = cursor != "" {
			page, err := s.List(ctx, store.Query{Kind: kind, Cursor: cursor})
			if err != nil {
				return r, err
			}
			for _, item := range page.Items {
				rec := record{}
				if rec.CheckReport, err = checker.Check(ctx, item.Record.Key); err != nil {
					if ctx.Err() != nil {
						return r, context.Cause(ctx)
					}
					if errors.Is(err, store.ErrNotFound) {
						if item.Err == nil { // deleted meanwhile
							continue
						}
						err = item.Err // nobody can ask for it: its id can't be read
					}
					text := err.Error()
					rec.Error = &text
				}
				rec.Key = item.Record.Key
				rec.Findings, rec.SetAside = orEmpty(rec.Findings), orEmpty(rec.SetAside)
				if rec.damaged() {
					r.Damaged++
				}
				r.Records = append(r.Records, rec)
			}
			cursor = page.Next
		}
	}
	if r.Damaged > 0 {
		r.ExitCode = exit.StoreError
	}
	return r, nil
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func (r report) print(env *verb.Env, format cli.Format) error {
	if format == cli.JSON {
		if err := env.Print(r); err != nil {
			return err
		}
		env.Format = cli.Text // stdout has its object already
	} else if err := r.lines(env); err != nil {
		return err
	}
	if r.Damaged > 0 {
		return &exit.CheckError{Damaged: true, Text: fmt.Sprintf("%d of %d records are damaged; they stay readable up to the damage: hostctl session log", r.Damaged, len(r.Records))}
	}
	return nil
}

func (r report) lines(env *verb.Env) error {
	var b strings.Builder
	for _, rec := range r.Records {
		name := term.Line(fmt.Sprintf("%s %q", rec.Key.Kind, rec.Key.ID), 120)
		verdict := "whole"
		if rec.damaged() {
			verdict = "DAMAGED"
		}
		fmt.Fprintf(&b, "%s  %s: revision %d, %d commits, %d entries, %d bytes\n", verdict, name, rec.Revision, rec.Commits, rec.Entries, rec.Bytes)
		if rec.Error != nil {
			fmt.Fprintf(&b, "    %s\n", term.Line(*rec.Error, 1000))
		}
		for _, f := range rec.Findings {
			fmt.Fprintf(&b, "    %s\n", term.Line(f, 1000))
		}
		for _, f := range rec.SetAside {
			fmt.Fprintf(&b, "    set aside: %s\n", term.Line(f, 1000))
		}
	}
	fmt.Fprintf(&b, "%d records, %d damaged\n", len(r.Records), r.Damaged)
	_, err := fmt.Fprint(env.Out, b.String())
	return err
}
