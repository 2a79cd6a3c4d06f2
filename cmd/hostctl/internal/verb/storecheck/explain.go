package storecheck

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/loophost/loophost/cmd/hostctl/internal/cli"
	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/term"
	"github.com/loophost/loophost/cmd/hostctl/internal/verb"
	"github.com/loophost/loophost/host/store"
)

func newExplain(env *verb.Env) *cobra.Command {
	var url, kind string
	output := cli.NewFormat(cli.Text, cli.JSONL)
	cmd := &cobra.Command{
		Use:   "explain ID",
		Short: "Tell who wrote a record, who was fenced, and when",
		Long: `Explain tells a record's history in order: who created it, who came as its owner,
what each owner committed, whom an owner fenced, and who left. In text, an owner's
commits in a row are one line; jsonl has one object for each change. It changes
nothing. Where the record is damaged it tells what is whole, and exits 17.`,
		Example: "  hostctl store explain nightly\n  hostctl store explain nightly --output jsonl",
		Args:    verb.Exactly("ID"),
	}
	verb.StoreFlag(cmd.Flags(), &url)
	cmd.Flags().StringVar(&kind, "kind", string(store.KindSession), "kind of the record: session or scope")
	cmd.Flags().VarP(output, "output", "o", "what stdout gets")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		env.Format = output.Value
		if k := store.Kind(kind); k != store.KindSession && k != store.KindScope {
			return exit.Usagef("--kind %q is unknown; want session or scope", kind)
		}
		s, d, err := env.OpenStore(cmd.Context(), env.StoreURL(url))
		if err != nil {
			return err
		}
		historian, ok := s.(store.Historian)
		if !ok {
			return errors.Join(&store.Error{Op: "explain", Kind: store.ErrUnsupported, Detail: "the store " + d.Name + " does not keep its records' history"}, s.Close())
		}
		var told error
		tell := &teller{env: env, jsonl: output.Value == cli.JSONL}
		err = historian.History(cmd.Context(), store.Key{Kind: store.Kind(kind), ID: args[0]}, func(c store.Change) bool {
			told = tell.change(c)
			return told == nil
		})
		return errors.Join(told, tell.end(), err, s.Close())
	}
	return cmd
}

// teller prints changes. In text, commits of one owner in a row are told together.
type teller struct {
	env   *verb.Env
	jsonl bool
	row   []store.Change // commits that were not told yet
}

func (t *teller) change(c store.Change) error {
	if t.jsonl {
		return t.env.Print(c)
	}
	if c.Kind == store.ChangeCommit {
		if len(t.row) == 2 { // only the first and the last of a row are told
			c.Entries += t.row[1].Entries
			t.row = t.row[:1]
		}
		t.row = append(t.row, c)
		return nil
	}
	if err := t.end(); err != nil {
		return err
	}
	who := owner(c.Fence)
	switch c.Kind {
	case store.ChangeCreate:
		return t.line(c.Time, "created with revision %d, %d entries", c.Revision, c.Entries)
	case store.ChangeAcquire:
		if c.Fenced != nil {
			return t.line(c.Time, "%s came, and fenced %s", who, owner(*c.Fenced))
		}
		return t.line(c.Time, "%s came", who)
	case store.ChangeRelease:
		return t.line(c.Time, "%s left", who)
	case store.ChangeNever:
		return t.line(c.Time, "%s made sure at revision %d that the commit %s never applies", who, c.Revision, c.CommitID)
	}
	return t.line(c.Time, "%s: %s, revision %d", who, c.Kind, c.Revision)
}

// end tells the commits in a row.
func (t *teller) end() error {
	if len(t.row) == 0 {
		return nil
	}
	first, last := t.row[0], t.row[len(t.row)-1]
	row := t.row
	t.row = nil
	if len(row) == 1 {
		return t.line(first.Time, "%s wrote revision %d, %d entries", owner(first.Fence), first.Revision, first.Entries)
	}
	return t.line(last.Time, "%s wrote the revisions %d to %d since %s, %d entries", owner(first.Fence), first.Revision, last.Revision,
		first.Time.UTC().Format(time.TimeOnly), first.Entries+last.Entries)
}

func (t *teller) line(at time.Time, format string, args ...any) error {
	_, err := fmt.Fprintf(t.env.Out, "%s  %s\n", at.UTC().Format("2006-01-02 15:04:05.000"), fmt.Sprintf(format, args...))
	return err
}

// owner is a fence for people.
func owner(f store.Fence) string {
	if f.Run == "" {
		return "somebody"
	}
	run, _, _ := strings.Cut(f.Run, "-")
	return term.Line(fmt.Sprintf("%s (run %s)", f.Owner, run), 120)
}
