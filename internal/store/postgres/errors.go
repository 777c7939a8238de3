package postgres

import (
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/landfast/landfast/internal/planted"
	"github.com/landfast/landfast/internal/store"
)

// SQLSTATEs that are treated in a way of their own. Those of class LF are raised by the
// functions of the schema.
const (
	lockNotAvailable     = "55P03"
	serializationFailure = "40001"
	deadlockDetected     = "40P01"
	uniqueViolation      = "23505"
	noSuchText           = "22021" // bytes that are no text in the encoding
	untranslatableText   = "22P05"
	programLimitExceeded = "54000"
	readOnly             = "25006"
	failedTransaction    = "25P02"
	queryCanceled        = "57014"
	diskFull             = "53100"
	tooManyConnections   = "53300"
	insufficientRights   = "42501"
	noSuchTable          = "42P01"
	noSuchFunction       = "42883"
	noSuchStatement      = "26000"
	statementExists      = "42P05"
	protocolViolation    = "08P01"
	wrongPassword        = "28P01"
	wrongAuthorization   = "28000"
	noSuchDatabase       = "3D000"

	madeMeanwhile  = "LF001"
	wrongIsolation = "LF002"
	idForgotten    = "LF003"
)

// stateOf is the SQLSTATE of an error, or empty where the server sent none.
func stateOf(err error) string {
	if e, ok := errors.AsType[*pgconn.PgError](err); ok {
		return e.Code
	}
	return ""
}

// classOf is the first two characters of a SQLSTATE.
func classOf(state string) string { return state[:min(2, len(state))] }

// refused reports whether the error is the server's answer that the statement, which is a
// transaction, was undone: an ERROR. After a FATAL one, or none, it may have been committed:
// a backend that is ended after its COMMIT, and PgBouncer that has lost one, say so, too.
func refused(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	switch {
	case planted.Is(planted.LossIsRefusal) && !ok:
		return true
	case planted.Is(planted.FatalIsRefusal):
		return ok
	}
	return ok && e.SeverityUnlocalized == "ERROR" && classOf(e.Code) != "08" && !strings.HasPrefix(e.Code, "57P")
}

// notSent reports whether nothing of the statement has reached the server.
func notSent(err error) bool { return pgconn.SafeToRetry(err) }

// loginFails reports whether PgBouncer says that PostgreSQL is down, or does not let it in.
func loginFails(err error) bool {
	e, ok := errors.AsType[*pgconn.PgError](err)
	return ok && e.Code == protocolViolation && strings.Contains(e.Message, "login has been failing")
}

// passes reports whether an error has to do with the server's state, not with what was asked of
// it: it may be gone in a moment.
func passes(err error) bool {
	switch state := stateOf(err); classOf(state) {
	case "", "08", "40", "53", "57", "58": // connections, other transactions, resources, somebody's hand, files
		return true
	default:
		return state == readOnly || state == failedTransaction || state == lockNotAvailable
	}
}

// definite translates the server's refusal of a batch.
func definite(err error) error {
	var kind error
	switch state := stateOf(err); {
	case state == diskFull:
		kind = store.ErrFull
	case state == programLimitExceeded, state == noSuchText, state == untranslatableText:
		// Its text reaches the client, whom the names of our tables and indexes do not concern.
		return fmt.Errorf("%w: PostgreSQL cannot hold a name or a value of it (SQLSTATE %s)", store.ErrUnstorable, state)
	case passes(err):
		kind = store.ErrUnavailable
	default:
		return fmt.Errorf("postgres: %s", plain(err))
	}
	return fmt.Errorf("%w: %s", kind, plain(err))
}

// plain is the text of an error of the server without its statement, its values and its place in
// PostgreSQL's source, and with what to do where that is known. It is for logs and operators.
func plain(err error) string {
	e, ok := errors.AsType[*pgconn.PgError](err)
	if !ok {
		text := strings.Join(strings.Fields(err.Error()), " ")
		if strings.Contains(text, "dial") {
			text += "; is PostgreSQL running, and does postgres.url name it?"
		}
		return text
	}
	text := fmt.Sprintf("postgresql: %s (SQLSTATE %s)", e.Message, e.Code)
	if what := remedy(e.Code); what != "" && !loginFails(err) {
		text += "; " + what
	}
	return text
}

// remedy is what to do about a SQLSTATE.
func remedy(state string) string {
	switch state {
	case wrongPassword, wrongAuthorization:
		return "check user and password (postgres.url, postgres.password_file, PGPASSWORD) and pg_hba.conf"
	case noSuchDatabase:
		return "make it: createdb --encoding UTF8 NAME"
	case insufficientRights:
		return "the user must own the database, or the schema landfast and all in it: GRANT CREATE ON DATABASE ... TO ..., ALTER SCHEMA landfast OWNER TO ..."
	case tooManyConnections:
		return "raise max_connections, or lower postgres.max_connections of the instances"
	case readOnly:
		return "postgres.url must name the primary, or all hosts of which one is"
	case noSuchTable, noSuchFunction:
		return "the schema landfast was changed by hand, or belongs to something else"
	case noSuchStatement, statementExists, protocolViolation:
		return "if PgBouncer stands between, set postgres.pgbouncer: true"
	case wrongIsolation:
		return isolationRemedy
	}
	return ""
}

const isolationRemedy = "ALTER ROLE ... SET default_transaction_isolation = 'read committed'"
