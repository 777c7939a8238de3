package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"
	"unicode"

	"github.com/landfast/landfast/internal/contention"
)

type locksCommand struct {
	remote
	Watch    bool          `help:"Show it again and again, until Ctrl-C."`
	Interval time.Duration `default:"1s" placeholder:"DURATION" help:"How often, with --watch. Default: 1s."`
	JSON     bool          `name:"json" help:"Print everything as JSON."`
}

// Help is what --help adds.
func (locksCommand) Help() string {
	return `Changes of one table, or of one namespace, wait for each other. This shows which are held, who waits
for whom, which were waited for most in the last minute, and what to do about it. Where instances
share a PostgreSQL, it also shows who waits for rows there, of all of them, and who is in the way.
docs/contention.md teaches to read it.`
}

// shortestInterval keeps a watch from being a load.
const shortestInterval = 100 * time.Millisecond

// Run shows who waits for whom.
func (c *locksCommand) Run(world surroundings) error {
	if c.Interval < shortestInterval {
		return usageError{fmt.Errorf("--interval %v: it is shorter than %v; give a longer one", c.Interval, shortestInterval)}
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	shown, err := c.look(ctx)
	if err != nil || !c.Watch {
		return errors.Join(err, write(world.stdout, shown))
	}
	return c.watch(ctx, world.stdout, shown)
}

func write(to io.Writer, shown []byte) error {
	_, err := to.Write(shown)
	return err
}

// watch shows the first look and then others until ctx is done. A server that does not
// answer for a while, as when it is restarted, does not end it.
func (c *locksCommand) watch(ctx context.Context, to io.Writer, shown []byte) error {
	tick := time.NewTicker(c.Interval)
	defer tick.Stop()
	clearScreen := ""
	if isTerminal(to) {
		clearScreen = "\x1b[H\x1b[2J"
	}
	for {
		if !c.JSON {
			shown = fmt.Appendf(nil, "%s%s\n\n%s\n", clearScreen, time.Now().Format(time.TimeOnly), shown)
		}
		if err := write(to, shown); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		var err error
		if shown, err = c.look(ctx); ctx.Err() != nil {
			return nil
		} else if _, away := errors.AsType[unreachableError](err); away && !c.JSON {
			shown = []byte(err.Error() + "\n")
		} else if err != nil {
			return err
		}
	}
}

func isTerminal(to io.Writer) bool {
	f, ok := to.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// look asks the server once.
func (c *locksCommand) look(ctx context.Context) ([]byte, error) {
	var report contention.Report
	raw, err := c.do(ctx, "GET", "/management/v1/locks", nil, &report)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if c.JSON {
		err = printJSON(&b, raw)
	} else {
		err = printLocks(&b, report)
	}
	return b.Bytes(), err
}

// What is shown to a person; JSON has more.
const (
	keysShown     = 20
	requestsShown = 10
)

// printLocks writes a report for a person.
func printLocks(to io.Writer, r contention.Report) error {
	if len(r.Keys) == 0 {
		fmt.Fprintln(to, "nothing is held, nobody waits")
	} else {
		fmt.Fprintf(to, "keys held: %d; awaited: %d; requests that wait: %d\n\n", r.Held, r.Awaited, r.Waiting)
		if err := printKeys(to, r); err != nil {
			return err
		}
	}
	if r.Database != nil {
		if err := printRows(to, *r.Database); err != nil {
			return err
		}
	}
	if len(r.Hot) > 0 {
		t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
		fmt.Fprintf(t, "\nIN THE LAST MINUTE\tWAITS\tWAITED\tCONFLICTS\n")
		for _, h := range r.Hot[:min(len(r.Hot), requestsShown)] {
			fmt.Fprintf(t, "%s\t%d\t%v\t%d\n", printable(h.Key), h.Waits, age(h.WaitedMillis), h.Conflicts)
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	for i, a := range r.Advice {
		if i == 0 {
			fmt.Fprintln(to)
		}
		fmt.Fprintf(to, "%s: %s: %s\n", printable(a.Key), a.Pattern, printable(a.Text))
	}
	return nil
}

func printKeys(to io.Writer, r contention.Report) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "KEY\tAGE\tOPERATION\tREQUEST\tCLIENT\tSTATE\n")
	keys := r.Keys[:min(len(r.Keys), keysShown)]
	for _, k := range keys {
		name := printable(k.Key)
		line := func(of contention.Request, state string) {
			fmt.Fprintf(t, "%s\t%v\t%s\t%s\t%s\t%s\n", name, age(of.ForMillis), or(of.Operation, "-"), or(of.RequestID, "-"), or(of.Client, "the server itself"), printable(state))
			name = ""
		}
		left := func(n int, do string) {
			if n > 0 {
				fmt.Fprintf(t, "%s\t\t\t\t\t%d more %s\n", name, n, do)
			}
		}
		for _, h := range k.Holders[:min(len(k.Holders), requestsShown)] {
			line(h, holds(h))
		}
		left(len(k.Holders)+k.HoldersLeftOut-requestsShown, "hold it")
		for _, w := range k.Waiters[:min(len(k.Waiters), requestsShown)] {
			line(w, waits(k, w))
		}
		left(len(k.Waiters)+k.WaitersLeftOut-requestsShown, "wait")
	}
	err := t.Flush()
	if more := len(r.Keys) - len(keys) + r.KeysLeftOut; more > 0 {
		fmt.Fprintf(to, "%d more keys are held or awaited; --json shows those with most waiters\n", more)
	}
	return err
}

// printRows writes who waits for rows of the database, of all instances, and who else has locked some.
func printRows(to io.Writer, d contention.Database) error {
	if d.Problem != "" {
		_, err := fmt.Fprintf(to, "\nrows in PostgreSQL: unknown: %s\n", printable(d.Problem))
		return err
	}
	if len(d.Waiters) == 0 && len(d.Foreign) == 0 {
		return nil
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "\nROWS IN POSTGRESQL\tAGE\tOPERATION\tREQUEST\tSTATE\n")
	waiters := d.Waiters[:min(len(d.Waiters), requestsShown)]
	for _, w := range waiters {
		var whom []string
		for _, b := range w.BlockedBy {
			whom = append(whom, holderName(b))
		}
		fmt.Fprintf(t, "%s, pid %d\t%v\t%s\t%s\twaits for %s\n",
			printable(w.Instance), w.PID, age(w.ForMillis), or(w.Operation, "-"), or(w.RequestID, "-"), strings.Join(whom, " and "))
	}
	foreign := d.Foreign[:min(len(d.Foreign), requestsShown)]
	for _, f := range foreign {
		since, state := "?", "hidden from our user"
		if f.State != "" {
			since, state = age(f.TransactionForMillis).String(), printable(f.State)+", "+or(f.Address, "local")
		}
		fmt.Fprintf(t, "%s, pid %d\t%s\t\t\tuser %s, %s\n", or(f.Application, "no name"), f.PID, since, or(f.User, "unknown"), state)
	}
	err := t.Flush()
	if more := len(d.Waiters) + d.WaitersLeftOut + len(d.Foreign) + d.ForeignLeftOut - len(waiters) - len(foreign); more > 0 {
		fmt.Fprintf(to, "%d more sessions wait or have locks\n", more)
	}
	return err
}

// holderName says in few words who is in a batch's way.
func holderName(h contention.RowHolder) string {
	switch {
	case h.PID == 0:
		return "a prepared transaction"
	case h.Instance != "":
		return fmt.Sprintf("%s of %s, pid %d", or(h.RequestID, "a batch"), printable(h.Instance), h.PID)
	}
	return fmt.Sprintf("%s, pid %d", or(h.Application, "no name"), h.PID)
}

// holds says how a holder holds.
func holds(h contention.Request) string {
	switch {
	case h.Batch == h.RequestID && h.Batch != "":
		return "holds, and leads a batch"
	case h.Batch != "":
		return "in the batch of " + h.Batch
	case h.Mode == "shared":
		return "holds, with other readers"
	}
	return "holds"
}

// waits says whom a waiter waits for.
func waits(k contention.Key, w contention.Request) string {
	if w.WaitsFor == nil {
		return "waits"
	}
	whom := fmt.Sprintf("%s (%s)", or(w.WaitsFor.RequestID, "the server itself"), or(w.WaitsFor.Operation, "-"))
	if w.WaitsFor.Key == k.Key {
		return "waits for " + whom
	}
	return fmt.Sprintf("waits for %s at %s", whom, w.WaitsFor.Key)
}

func or(s, instead string) string {
	if s == "" {
		return instead
	}
	return printable(s)
}

// age is a length of time as a person reads it.
func age(millis int64) time.Duration {
	d := time.Duration(millis) * time.Millisecond
	switch {
	case d >= time.Minute:
		return d.Round(time.Second)
	case d >= time.Second:
		return d.Round(100 * time.Millisecond)
	}
	return d
}

// printable keeps names that clients chose from steering the terminal.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '?'
	}, s)
}
