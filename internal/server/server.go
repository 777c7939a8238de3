package server

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/landfast/landfast/internal/blob"
	bloblocal "github.com/landfast/landfast/internal/blob/local"
	blobs3 "github.com/landfast/landfast/internal/blob/s3"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/config"
	"github.com/landfast/landfast/internal/contention"
	"github.com/landfast/landfast/internal/duty"
	"github.com/landfast/landfast/internal/journal"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/key"
	locklocal "github.com/landfast/landfast/internal/lock/local"
	"github.com/landfast/landfast/internal/reclaim"
	"github.com/landfast/landfast/internal/rest"
	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/postgres"
)

// Limits of the listener. What a request may take in all is configured.
const (
	readHeaderTimeout = 10 * time.Second
	idleTimeout       = 120 * time.Second
	maxHeaderBytes    = 64 << 10
	// writeGrace is the time to send an answer, after the request's own time, to a
	// client that reads slowly.
	writeGrace = time.Minute
	// readyTimeout bounds the question of /readyz to the store.
	readyTimeout = 2 * time.Second
	// checkTimeout bounds the look at the roots of all warehouses before the server is ready.
	checkTimeout = 5 * time.Second
	// applyLimit bounds a batch that was sent, which outlives its request.
	applyLimit = 15 * time.Second
	// outcomeRetention is how long the store remembers a batch at least: many times as long as a request may take by default
	// to ask for its outcome.
	outcomeRetention = 10 * time.Minute
	// openTimeout bounds how long a start waits for a database.
	openTimeout = 30 * time.Second
	// lockSlice is how long a row that is locked elsewhere is waited for on a connection.
	lockSlice = 200 * time.Millisecond
	// forgetEvery is how often expired idempotency keys are looked for.
	forgetEvery = 5 * time.Minute
)

// ErrCutOff tells that the server stopped while requests were still running, because their time was up.
var ErrCutOff = errors.New("requests were cut off")

// Options are what Run needs beside the configuration.
type Options struct {
	Config  config.Config // must be valid: from config.Load
	Version string        // of the program
	Screen  io.Writer     // gets the start screen, once, when the server is ready
	Log     io.Writer     // gets the log
	Warn    []string      // warnings about the configuration, for the log
	// Ready, if not nil, is told once where the server can be reached.
	Ready func(url string)
}

// Run serves until ctx is done, then lets the running requests finish and returns
// nil, or ErrCutOff where some did not within shutdown_timeout. Any other error
// says why the server could not start or go on, and what to do. It blocks, and
// leaves no goroutine behind, unless a request was cut off. A failed fsync of the
// catalog ends the process, with a line in the log and status 1.
func Run(ctx context.Context, o Options) error {
	began := time.Now()
	s, err := start(ctx, o)
	if err != nil {
		return err
	}
	s.log.Info("ready", "url", s.url, "state", s.state, "version", o.Version, "took", time.Since(began).Round(time.Microsecond))
	if o.Screen != nil {
		facts := screen{
			Version: o.Version, URL: s.url, Listen: s.listener.Addr().String(), Open: !s.config.Loopback(), State: s.state, Main: s.main,
		}
		if _, err := io.WriteString(o.Screen, facts.String()); err != nil {
			s.log.Warn("the start screen could not be written", "error", err)
		}
	}
	if o.Ready != nil {
		o.Ready(s.url)
	}
	return s.serve(ctx)
}

// server is one running instance, in the order in which it is started.
type server struct {
	config    config.Config
	log       *slog.Logger
	metrics   *metrics
	listener  net.Listener
	url       string
	instance  string     // its name where there are several
	dir       *dataDir   // nil: the records are elsewhere
	ids       *store.IDs // of batches
	store     records
	postgres  *postgres.Store // the store of that mode; nil: it is another
	state     string          // where the records are, for people
	queue     *locklocal.Table
	hot       *contention.Hot
	files     blob.ByScheme
	s3        *blobs3.Store
	journal   *journal.Journal
	kernel    *kernel.Kernel
	duties    *duty.Roster // nil: this process is alone
	reclaimer *reclaim.Reclaimer
	main      string // location of the warehouse main; empty: it was deleted
	http      *http.Server

	requests *gate // those of the API
}

// start brings everything up, and serves nobody yet. After an error everything is
// down again.
func start(ctx context.Context, o Options) (_ *server, err error) {
	s := &server{
		config: o.Config, log: newLog(o.Log, o.Config.Log), metrics: newMetrics(o.Version), requests: newGate(),
		ids: store.NewIDs(func() string { return uuid.Must(uuid.NewV7()).String() }),
	}
	for _, w := range o.Warn {
		s.log.Warn(w)
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err = s.listen(ctx); err != nil {
		return nil, err
	}
	if err = s.openRecords(ctx); err != nil {
		return nil, err
	}
	s.openQueue()
	s.s3 = blobs3.New(s.config.S3)
	s.files = blob.ByScheme{"file": bloblocal.New(), "s3": s.s3}
	settled := func(context.Context, string) error { return nil }
	if s.dir != nil { // its records are those of one process
		s.journal = journal.New(journal.Options{Store: s.store, Files: s.files, NewID: s.ids.Next, Log: s.log})
		if err = s.journal.Recover(ctx); err != nil {
			return nil, err
		}
		settled = s.journal.Settled
	}
	retries := cmp.Or(s.config.Catalog.MaxLockRetries, -1)
	if s.config.Catalog.LockTimeout == 0 {
		retries = -1 // nothing is waited for
	}
	s.kernel = kernel.New(kernel.Options{
		Store: s.watched(), Files: s.files, Queue: s.queue, Journal: s.journal, NewBatchID: s.ids.Next, Patience: s.patience,
		Limit: s.config.RequestTimeout, ApplyLimit: applyLimit, Observe: s.metrics.operation, Lost: s.lost,
		BlockedLimit: s.config.Catalog.LockTimeout, BlockedRetries: retries,
	})
	if s.dir == nil { // others may share the records
		s.duties = duty.New(s.kernel, uuid.NewString(), s.log)
	}
	s.reclaimer = reclaim.New(reclaim.Options{Runner: s.kernel, Files: s.files, Log: s.log, Grace: s.grace(), Settled: settled, Duties: s.duties})
	if err := s.bootstrap(ctx); err != nil {
		return nil, err
	}
	if s.dir != nil {
		if err := s.dir.markServed(); err != nil {
			return nil, err
		}
	}
	if err := s.checkWarehouses(ctx); err != nil {
		return nil, err
	}
	s.handle()
	return s, nil
}

// bootstrap makes the catalog's first records where there are none. The root of
// main is marked before them: a mark without a catalog does no harm, a catalog
// whose root bears no mark could not be told from an unmounted volume.
func (s *server) bootstrap(ctx context.Context) error {
	first, err := s.store.Get(ctx, key.ForCatalog())
	if err != nil {
		return fmt.Errorf("read the catalog: %w", err)
	}
	if !first.Exists() && s.dir != nil && s.dir.served {
		return s.dir.catalogGone()
	}
	var root blob.Root
	id := uuid.NewString()
	if !first.Exists() {
		location := s.config.Warehouse.Main.Location
		if location == "" {
			location = s.warehouseRoot(catalog.MainWarehouse)
		}
		if root, err = s.roots().Resolve(ctx, location, blob.S3Options{}); err != nil {
			return fmt.Errorf("the root of the warehouse %s: %w", catalog.MainWarehouse, err)
		}
		if err = s.roots().Mark(ctx, root, id); err != nil {
			return fmt.Errorf("the root of the warehouse %s: %w", catalog.MainWarehouse, err)
		}
	}
	op := &catalog.Bootstrap{Request: catalog.BootstrapRequest{MainID: id, Root: root}}
	if err := s.kernel.Do(ctx, op); err != nil {
		return fmt.Errorf("open the catalog: %w", err)
	}
	if op.Result.Created {
		s.log.Info("a new catalog", "state", s.state, "warehouse", catalog.MainWarehouse, "location", root.URI)
	}
	return nil
}

func (s *server) roots() blob.Roots {
	if s.dir == nil {
		return s.files
	}
	return roots{s.files, s.dir.path}
}

// warehouseRoot is the location of a warehouse that names none; empty: it must.
func (s *server) warehouseRoot(name string) string {
	if s.dir == nil {
		return ""
	}
	return s.dir.warehouseRoot(name)
}

// checkWarehouses looks for the marker of each warehouse's root. A warehouse that
// lacks it is refused, request by request; the others are served.
func (s *server) checkWarehouses(ctx context.Context) error {
	list := &catalog.ListWarehouses{}
	if err := s.kernel.Do(ctx, list); err != nil {
		return fmt.Errorf("list the warehouses: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	for _, w := range list.Result.Warehouses {
		switch err := s.files.CheckMark(ctx, w.Root, w.ID); {
		case errors.Is(err, blob.ErrMarkMissing):
			s.log.Error("a warehouse is not served until its root is put right", "warehouse", w.Name, "error", err)
		case err != nil:
			s.log.Warn("the root of a warehouse cannot be reached", "warehouse", w.Name, "error", err)
		}
		if w.Name == catalog.MainWarehouse {
			s.main = w.Root.URI
		}
	}
	return nil
}

// listen binds the address, before anything else is made: a start that cannot
// serve leaves no directory behind. Who connects from here on waits until serve.
func (s *server) listen(ctx context.Context) (err error) {
	var c net.ListenConfig
	s.listener, err = c.Listen(ctx, "tcp", s.config.Listen)
	if err != nil {
		return fmt.Errorf("listen on %s: %w; stop what uses the address, or choose another with --listen (port 0 takes a free one)", s.config.Listen, err)
	}
	s.url = urlOf(s.config.Listen, s.listener.Addr())
	_, port, _ := net.SplitHostPort(s.listener.Addr().String()) // of an address of ours
	s.instance = instanceName(s.config, port)
	if s.config.Instance != "" || s.config.Store == config.StorePostgres {
		s.log = s.log.With("instance", s.instance)
	}
	return nil
}

// handle prepares the HTTP server.
func (s *server) handle() {
	api := rest.New(rest.Options{
		Runner: s.kernel, Reclaimer: s.reclaimer, Roots: s.roots(), WarehouseRoot: s.warehouseRoot,
		IdempotencyLifetime: s.config.IdempotencyLifetime, ClientConfig: s.s3.ClientConfig,
		RequestTimeout: s.config.RequestTimeout, MaxBodyBytes: s.config.MaxBodyBytes, Log: s.log, Locks: s.locks,
	})
	routes := s.routes(api)
	if s.config.Loopback() && !s.config.Insecure {
		routes = onlyHere(routes, api.Misdirected)
	}
	s.http = &http.Server{
		Handler:           &front{next: routes, metrics: s.metrics, log: s.log},
		ReadHeaderTimeout: readHeaderTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    maxHeaderBytes,
		WriteTimeout:      s.config.RequestTimeout + writeGrace,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelDebug), // of clients that hang up
	}
}

// serve answers requests until ctx is done or the listener fails, then stops.
func (s *server) serve(ctx context.Context) error {
	background, stopBackground := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	running.Go(func() { s.duties.Run(background) })
	running.Go(func() { s.reclaimer.Run(background) })
	if s.journal != nil {
		running.Go(func() { s.journal.Run(background) })
	}
	if os.Getenv("GOGC") == "" {
		running.Go(func() { easeGC(background) })
	}
	running.Go(func() { s.forget(background) })
	served := make(chan error, 1)
	go func() { served <- s.http.Serve(s.listener) }()

	var failed, cutOff error
	select {
	case failed = <-served:
		s.log.Error("the listener failed", "error", failed)
		cutOff = s.drain(ctx)
	case <-ctx.Done():
		cutOff = s.drain(ctx)
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			failed = err
		}
	}
	stopBackground()
	running.Wait()
	closed := s.close()
	s.log.Info("stopped")
	return errors.Join(failed, cutOff, closed)
}

// drain lets the running requests finish. While there are any, the address stays
// bound, so that /readyz can say 503 and a new request is told to come again; with
// the last of them the listener closes.
func (s *server) drain(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.config.ShutdownTimeout)
	defer cancel()
	idle := s.requests.close()
	s.log.Info("stopping: no new requests; running ones may finish", "within", s.config.ShutdownTimeout)
	s.http.SetKeepAlivesEnabled(false) // every answer from here on ends its connection
	select {
	case <-idle:
	case <-ctx.Done():
	}
	if err := s.http.Shutdown(ctx); err != nil {
		return errors.Join(fmt.Errorf("%w: they took longer than shutdown_timeout (%v)", ErrCutOff, s.config.ShutdownTimeout), s.http.Close())
	}
	return nil
}

// close takes down what start brought up, as far as it came.
func (s *server) close() error {
	var errs []error
	if s.listener != nil {
		if err := s.listener.Close(); !errors.Is(err, net.ErrClosed) {
			errs = append(errs, err)
		}
	}
	if s.queue != nil {
		s.queue.Close()
	}
	if s.s3 != nil {
		s.s3.Close()
	}
	if s.store != nil {
		errs = append(errs, s.store.Close())
	}
	if s.dir != nil {
		errs = append(errs, s.dir.close())
	}
	return errors.Join(errs...)
}

// forget drops idempotency keys whose lifetime is over, until ctx is done.
func (s *server) forget(ctx context.Context) {
	tick := time.NewTicker(forgetEvery)
	defer tick.Stop()
	for {
		if err := s.forgetOnce(ctx); err != nil && ctx.Err() == nil {
			s.log.Warn("expired idempotency keys are still there", "error", err)
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// forgetOnce drops expired keys, unless another instance does or has just done.
func (s *server) forgetOnce(ctx context.Context) error {
	taken, err := s.duties.Take(ctx, forgetEvery/2, "forget-expired")
	if err != nil || len(taken) == 0 {
		return err
	}
	if err := catalog.ForgetAllExpired(ctx, s.kernel); err != nil {
		s.duties.Done(ctx, taken...)
		return err
	}
	s.duties.Recurs(ctx, taken...)
	return nil
}

// lost passes on the files of decisions that lost, each to its warehouse.
func (s *server) lost(files []kernel.File) {
	for _, f := range files {
		s.reclaimer.Lost(f.Warehouse, []string{f.Location})
	}
}

// grace is how long a file stays that a request on its way may still name: two
// requests, or one whose batch takes all the time that it may.
func (s *server) grace() time.Duration {
	return max(2*s.config.RequestTimeout, s.config.RequestTimeout+2*applyLimit)
}

// routes sends the server's own paths to their handlers, whether it is stopping or
// not, and everything else to the API. ServeMux would redirect some of the API's paths.
func (s *server) routes(api *rest.Handler) http.Handler {
	own := map[string]http.Handler{
		"/healthz": http.HandlerFunc(s.healthz),
		"/readyz":  http.HandlerFunc(s.readyz),
		"/metrics": s.metrics.handler(),
	}
	if s.config.Pprof {
		for path, h := range profiles() {
			own[path] = onlyFromHere(h)
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, ok := own[r.URL.Path]
		if !ok {
			if !s.requests.enter() {
				api.Stopping(w, r)
				return
			}
			defer s.requests.leave()
			api.ServeHTTP(w, r)
			return
		}
		r.Pattern = "GET " + r.URL.Path
		r = r.WithContext(rest.WithRequestID(r.Context(), r.Header.Get(rest.RequestIDHeader)))
		w.Header().Set("Cache-Control", "no-store")
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "only GET and HEAD are allowed here", http.StatusMethodNotAllowed)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// healthz tells that the process runs.
func (s *server) healthz(w http.ResponseWriter, _ *http.Request) {
	_, _ = io.WriteString(w, "ok\n") // a prober that has gone needs no answer
}

// readyz tells whether requests are worth sending here.
func (s *server) readyz(w http.ResponseWriter, r *http.Request) {
	if s.requests.isShut() {
		http.Error(w, "stopping", http.StatusServiceUnavailable)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), readyTimeout)
	defer cancel()
	if _, err := s.store.Get(ctx, key.ForCatalog()); err != nil {
		s.log.WarnContext(r.Context(), "not ready", "error", err)
		http.Error(w, "the store does not answer", http.StatusServiceUnavailable)
		return
	}
	_, _ = io.WriteString(w, "ready\n")
}
