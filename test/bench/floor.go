package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime/metrics"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
)

// floorFlag makes the bench serve the floor.
const floorFlag = "floor"

// floor is the bare HTTP server that catalogs are compared with. It answers GET
// /answer/NAME with what PUT stored there, or with 304 to a request that names an
// entity tag, and POST /write/NAME the same way, after it made files durable, one
// after another.
type floor struct {
	dir   string
	files atomic.Int64

	mu      sync.RWMutex
	answers map[string]answer
}

// answer is what the floor answers.
type answer struct {
	body  []byte
	files []int // how large the files are that POST makes durable
}

// filesHeader is how PUT says answer.files, with commas between them.
const filesHeader = "X-Files"

func newFloor(dir string) http.Handler {
	f := &floor{dir: dir, answers: map[string]answer{}}
	mux := http.NewServeMux()
	mux.HandleFunc("PUT /answer/{name...}", f.put)
	mux.HandleFunc("GET /answer/{name...}", f.get)
	mux.HandleFunc("POST /write/{name...}", f.write)
	mux.HandleFunc("GET /metrics", showAllocated)
	return mux
}

// showAllocated shows what this process has allocated, as Landfast does.
func showAllocated(w http.ResponseWriter, _ *http.Request) {
	samples := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(samples)
	fmt.Fprintf(w, "%s %d\n", allocatedMetric, samples[0].Value.Uint64())
}

func (f *floor) put(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	a := answer{body: body}
	for digits := range strings.SplitSeq(r.Header.Get(filesHeader), ",") {
		if digits == "" {
			continue
		}
		size, err := strconv.Atoi(digits)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		a.files = append(a.files, size)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.answers[r.PathValue("name")] = a
	w.WriteHeader(http.StatusNoContent)
}

func (f *floor) answer(w http.ResponseWriter, r *http.Request) (answer, bool) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	a, ok := f.answers[r.PathValue("name")]
	if !ok {
		http.NotFound(w, r)
	}
	return a, ok
}

func (f *floor) get(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("If-None-Match") != "" {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	if a, ok := f.answer(w, r); ok {
		respond(w, a.body)
	}
}

func (f *floor) write(w http.ResponseWriter, r *http.Request) {
	a, ok := f.answer(w, r)
	if !ok {
		return
	}
	if _, err := io.Copy(io.Discard, r.Body); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	for _, size := range a.files {
		name := filepath.Join(f.dir, strconv.FormatInt(f.files.Add(1), 10))
		if err := writeDurably(name, content(a.body, size)); err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
	}
	respond(w, a.body)
}

// content is something of the size to write: of the answer if it is long enough.
func content(body []byte, size int) []byte {
	if size <= len(body) {
		return body[:size]
	}
	return make([]byte, size)
}

func respond(w http.ResponseWriter, body []byte) {
	if len(body) == 0 {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	_, _ = w.Write(body) // an error means that the client is gone
}

// writeDurably writes, fsyncs and renames a file: the least for a file that is whole
// or not there. Unlike Landfast it does not make the name durable, too.
func writeDurably(name string, data []byte) error {
	f, err := os.OpenFile(name+".tmp", os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o666)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	return os.Rename(name+".tmp", name)
}

// serveFloor serves until stdin ends, which it does when the bench does, or ctx
// does. Its first line on stdout is its address.
func serveFloor(ctx context.Context, dir string, stdin io.Reader, stdout io.Writer) error {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	server := &http.Server{Handler: newFloor(dir), ReadHeaderTimeout: exchangeMax}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		_, _ = io.Copy(io.Discard, stdin)
		cancel()
	}()
	defer context.AfterFunc(ctx, func() { _ = server.Close() })()
	if _, err := fmt.Fprintln(stdout, listener.Addr()); err != nil {
		return err
	}
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
