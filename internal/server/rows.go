package server

import (
	"context"
	"errors"
	"os"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/contention"
	"github.com/landfast/landfast/internal/store/postgres"
)

// lookTimeout bounds the question to PostgreSQL who waits for whom.
const lookTimeout = time.Second

// errNoAnswer stands for an error that is in the log, and might tell a client too much.
var errNoAnswer = errors.New("PostgreSQL does not answer; the log of this instance says why")

// rows adds to a report who waits for rows in PostgreSQL.
func (s *server) rows(ctx context.Context, r *contention.Report) {
	ctx, cancel := context.WithTimeout(ctx, lookTimeout)
	defer cancel()
	found, err := s.postgres.Sessions(ctx)
	if err != nil {
		s.log.Warn("who waits for rows could not be read", "error", err)
		err = errNoAnswer
	}
	sessions := make([]contention.Session, len(found))
	for i, f := range found {
		sessions[i] = sessionOf(f)
	}
	r.AddRows(s.instance, sessions, err)
}

func sessionOf(f postgres.Session) contention.Session {
	return contention.Session{
		PID: f.PID, Instance: f.Instance, Operation: operationOf(f.Operation), RequestID: f.Request,
		User: f.User, Application: f.Application, Address: f.Address, State: f.State, WaitEvent: f.WaitEvent,
		Transaction: f.Transaction, Attempt: f.Statement, BlockedBy: f.BlockedBy,
	}
}

// operationOf is the operation whose name was cut.
func operationOf(cut string) string {
	if _, whole := catalog.Operations[cut]; whole || cut == "" {
		return cut
	}
	for name := range catalog.Operations {
		if strings.HasPrefix(name, cut) {
			return name
		}
	}
	return cut
}

// instanceName is the configured name of this instance, or one that is made of the host's and the port.
func instanceName(c config.Config, port string) string {
	if c.Instance != "" {
		return c.Instance
	}
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	name := strings.Map(func(r rune) rune {
		if r < '!' || r > '~' {
			return '-'
		}
		return r
	}, host+":"+port)
	return name[max(0, len(name)-config.InstanceMax):]
}
