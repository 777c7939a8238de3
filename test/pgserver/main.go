// Command pgserver starts a real PostgreSQL server for tests, and ends it when standard input is closed: also when
// whoever started it is killed. It prints one line when it is ready: the URL of an empty database. What was in it is gone
// with the server.
package main

import (
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

func main() {
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, "pgserver:", err)
		os.Exit(1)
	}
}

func serve() error {
	signal.Ignore(os.Interrupt, syscall.SIGTERM) // an interrupted script closes standard input when it is done
	c, err := pgtest.Start()
	if err != nil {
		return err
	}
	fmt.Println(c.URL("postgres"))
	_, _ = io.Copy(io.Discard, os.Stdin)
	return c.Stop()
}
