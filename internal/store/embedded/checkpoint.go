package embedded

import (
	"log/slog"
	"time"
)

// SQLite's log is copied into the file (a checkpoint) beside the writer, so that no
// batch waits for the two fsyncs and the write of each changed page which that takes.
// But the log starts over only once all of it is copied, which does not come about
// while the writer goes on. So when the log has grown long the writer copies what
// little is left of it, as SQLite always does in the COMMIT that finds it so.
const (
	// checkpointAt is the length of log, in pages, after which copying is asked for.
	checkpointAt = 1000
	// checkpointPause is the least time between two copyings.
	checkpointPause = 100 * time.Millisecond
	// writerCheckpointAt is the length of log, in pages, at which the writer does it.
	// It bounds the log, at 32 MiB, which a process that starts after a crash reads whole.
	writerCheckpointAt = 8000
)

// checkpointer copies the log when it has grown. The writer counts for it.
type checkpointer struct {
	grown int           // pages since it was last asked, about; the writer's
	asked chan struct{} // holds one
}

func newCheckpointer() *checkpointer { return &checkpointer{asked: make(chan struct{}, 1)} }

// count adds what a group wrote in the log.
func (p *checkpointer) count(group []*request) {
	const page = 4096
	for _, r := range group {
		p.grown += 1 + len(r.leaves) + r.size/page
	}
	if p.grown < checkpointAt {
		return
	}
	p.grown = 0
	select {
	case p.asked <- struct{}{}:
	default:
	}
}

// run copies until closing. An error costs nothing but time: what was not copied stays
// in the log, and is copied later or by the writer.
func (p *checkpointer) run(c *conn, closing <-chan struct{}, log *slog.Logger) {
	pause := time.NewTimer(0)
	defer pause.Stop()
	for {
		select {
		case <-closing:
			return
		case <-pause.C:
		}
		select {
		case <-closing:
			return
		case <-p.asked:
		}
		if err := c.exec("PRAGMA wal_checkpoint(PASSIVE)"); err != nil {
			log.Warn("the catalog's log could not be copied into its file; it is tried again", "error", err)
		}
		pause.Reset(checkpointPause)
	}
}
