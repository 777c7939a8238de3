package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"
)

// TestMain makes `landfast` a command of the scripts: this test binary.
func TestMain(m *testing.M) {
	testscript.Main(leakChecked{m}, map[string]func(){"landfast": main})
}

type leakChecked struct{ m *testing.M }

func (l leakChecked) Run() int {
	status := l.m.Run()
	if status == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			status = 1
		}
	}
	return status
}

// TestScripts runs the transcripts of testdata/script. Beside testscript's own
// commands they have:
//
//	serve NAME [LANDFAST_X=VALUE...] [FLAG...]
//	                       starts `landfast serve` on a free port, waits until it is ready, and sets LANDFAST_URL
//	                       and ADDRESS, its host:port; what it prints is in NAME.out and NAME.err
//	signal NAME TERM|KILL  sends it a signal
//	ended NAME STATUS      waits for its end: an exit status, or `killed`
//	status EXPECTED COMMAND [ARGUMENT...]
//	                       runs a command that must end with that exit status
//	hang                   sends LANDFAST_URL half of a request that makes the namespace slow; it stays so until the script ends
//	finish STATUS          sends the other half, and reads the answer
//	curl STATUS PATH       GETs from LANDFAST_URL
//	until STATUS PATH      does so until the answer is that
//	shows FILE TEXT        waits until the file contains it
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir: "testdata/script",
		Setup: func(e *testscript.Env) error {
			for _, name := range []string{"LANDFAST_URL", "LANDFAST_DATA"} {
				e.Setenv(name, "")
			}
			e.Setenv("COLUMNS", "100")
			servers := &servers{byName: map[string]*process{}}
			e.Values[serversKey{}] = servers
			e.Values[hangingKey{}] = &hanging{}
			e.Defer(servers.killAll)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"serve":  serve,
			"signal": signalServer,
			"ended":  ended,
			"status": status,
			"curl":   curl,
			"hang":   hang,
			"finish": finish,
			"until":  until,
			"shows":  shows,
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

type serversKey struct{}

// servers are the processes that one script started.
type servers struct {
	mu     sync.Mutex
	byName map[string]*process
}

type process struct {
	cmd   *exec.Cmd
	ended chan error
}

func (s *servers) killAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.byName {
		_ = p.cmd.Process.Kill() // fails when it has ended
		<-p.ended
	}
}

func serversOf(ts *testscript.TestScript) *servers {
	return ts.Value(serversKey{}).(*servers)
}

func (s *servers) named(ts *testscript.TestScript, name string) *process {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.byName[name]
	if !ok {
		ts.Fatalf("no server is called %s", name)
	}
	return p
}

// readyMax bounds the wait for a server, and endMax that for its end.
const (
	readyMax = 30 * time.Second
	endMax   = 60 * time.Second
)

func serve(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 {
		ts.Fatalf("usage: serve NAME [LANDFAST_X=VALUE...] [FLAG...]")
	}
	name, flags := args[0], args[1:]
	env := append(os.Environ(), "LANDFAST_DATA=", "LANDFAST_URL=")
	for len(flags) > 0 && strings.HasPrefix(flags[0], "LANDFAST_") {
		env, flags = append(env, flags[0]), flags[1:]
	}
	out, err := os.Create(ts.MkAbs(name + ".out"))
	ts.Check(err)
	defer out.Close()
	file, err := os.Create(ts.MkAbs(name + ".err"))
	ts.Check(err)
	log := &watchedLog{file: file, url: make(chan string, 1)}

	program, err := exec.LookPath("landfast")
	ts.Check(err)
	cmd := exec.Command(program, append([]string{"serve", "--listen", "127.0.0.1:0"}, flags...)...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = ts.MkAbs("."), out, log
	cmd.Env = env
	ts.Check(cmd.Start())
	p := &process{cmd, make(chan error, 1)}
	go func() {
		err := cmd.Wait()
		p.ended <- errors.Join(err, file.Close())
		close(p.ended)
	}()
	s := serversOf(ts)
	s.mu.Lock()
	s.byName[name] = p
	s.mu.Unlock()

	select {
	case url := <-log.url:
		ts.Setenv("LANDFAST_URL", url)
		ts.Setenv("ADDRESS", strings.TrimPrefix(url, "http://"))
	case err := <-p.ended:
		ts.Fatalf("the server ended: %v\n%s", err, ts.ReadFile(name+".err"))
	case <-time.After(readyMax):
		ts.Fatalf("the server was not ready:\n%s", ts.ReadFile(name+".err"))
	}
}

// watchedLog is the log of a server on its way into a file. It finds the URL in
// the line that says that the server is ready.
type watchedLog struct {
	file *os.File
	text []byte
	said bool
	url  chan string
}

var readyLine = regexp.MustCompile(`"?msg"?[=:]"?ready"?[ ,]"?url"?[=:]"?(http://[0-9.:]+)[" ]`)

func (l *watchedLog) Write(p []byte) (int, error) {
	if !l.said {
		l.text = append(l.text, p...)
		if m := readyLine.FindSubmatch(l.text); m != nil {
			l.said = true
			l.url <- string(m[1])
		}
	}
	return l.file.Write(p)
}

func signalServer(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal NAME TERM|KILL")
	}
	sig, ok := map[string]os.Signal{"TERM": syscall.SIGTERM, "INT": os.Interrupt, "KILL": os.Kill}[args[1]]
	if !ok {
		ts.Fatalf("unknown signal %s", args[1])
	}
	ts.Check(serversOf(ts).named(ts, args[0]).cmd.Process.Signal(sig))
}

func ended(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: ended NAME STATUS")
	}
	p := serversOf(ts).named(ts, args[0])
	select {
	case err := <-p.ended:
		if got := statusOfProcess(err); got != args[1] {
			ts.Fatalf("%s ended with %s\n%s", args[0], got, ts.ReadFile(args[0]+".err"))
		}
	case <-time.After(endMax):
		ts.Fatalf("%s did not end\n%s", args[0], ts.ReadFile(args[0]+".err"))
	}
}

func statusOfProcess(err error) string {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return "0"
	case errors.As(err, &exit) && exit.ExitCode() >= 0:
		return strconv.Itoa(exit.ExitCode())
	case errors.As(err, &exit):
		return "killed"
	}
	return err.Error()
}

func status(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status EXPECTED COMMAND [ARGUMENT...]")
	}
	if got := statusOfProcess(ts.Exec(args[1], args[2:]...)); got != args[0] {
		ts.Fatalf("exit status %s, want %s", got, args[0])
	}
}

// hanging is the request of hang.
type hanging struct {
	conn    net.Conn
	answers *bufio.Reader
}

type hangingKey struct{}

const hangingBody = `{"namespace":["slow"]}`

func hang(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 0 {
		ts.Fatalf("usage: hang")
	}
	address, err := url.Parse(ts.Getenv("LANDFAST_URL"))
	ts.Check(err)
	conn, err := net.DialTimeout("tcp", address.Host, 10*time.Second)
	ts.Check(err)
	ts.Defer(func() { conn.Close() })
	ts.Check(conn.SetDeadline(time.Now().Add(endMax)))
	_, err = fmt.Fprintf(conn, "POST /v1/namespaces HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\nExpect: 100-continue\r\n\r\n", address.Host, len(hangingBody))
	ts.Check(err)
	// The server says this when the handler begins to read the body.
	h := &hanging{conn, bufio.NewReader(conn)}
	line, err := h.answers.ReadString('\n')
	ts.Check(err)
	if line != "HTTP/1.1 100 Continue\r\n" {
		ts.Fatalf("answered %q", line)
	}
	_, err = h.answers.ReadString('\n') // the empty line behind it
	ts.Check(err)
	*ts.Value(hangingKey{}).(*hanging) = *h
}

func finish(ts *testscript.TestScript, neg bool, args []string) {
	h := ts.Value(hangingKey{}).(*hanging)
	if neg || len(args) != 1 || h.conn == nil {
		ts.Fatalf("usage: finish STATUS, after hang")
	}
	_, err := h.conn.Write([]byte(hangingBody))
	ts.Check(err)
	response, err := http.ReadResponse(h.answers, &http.Request{Method: "POST"})
	ts.Check(err)
	ts.Check(response.Body.Close())
	if got := strconv.Itoa(response.StatusCode); got != args[0] || !response.Close {
		ts.Fatalf("%s, want %s; the connection ends: %v", got, args[0], response.Close)
	}
}

func curl(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: curl STATUS PATH")
	}
	if got := get(ts, args[1]); got != args[0] {
		ts.Fatalf("GET %s: %s, want %s", args[1], got, args[0])
	}
}

func until(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: until STATUS PATH")
	}
	got := ""
	for began := time.Now(); got != args[0]; got = get(ts, args[1]) {
		if time.Since(began) > endMax {
			ts.Fatalf("GET %s: still %s, want %s", args[1], got, args[0])
		}
	}
}

func shows(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: shows FILE TEXT")
	}
	for began := time.Now(); ; runtime.Gosched() {
		data, err := os.ReadFile(ts.MkAbs(args[0]))
		if err == nil && strings.Contains(string(data), args[1]) {
			return
		}
		if time.Since(began) > endMax {
			ts.Fatalf("%s never shows %q: %v\n%s", args[0], args[1], err, data)
		}
	}
}

// get is the status of a GET.
func get(ts *testscript.TestScript, path string) string {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, "GET", ts.Getenv("LANDFAST_URL")+path, nil)
	ts.Check(err)
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Do(r)
	ts.Check(err)
	ts.Check(response.Body.Close())
	return strconv.Itoa(response.StatusCode)
}

// TestScriptsAreThere: a script that was not found would pass.
func TestScriptsAreThere(t *testing.T) {
	found, err := filepath.Glob("testdata/script/*.txtar")
	if err != nil || len(found) < 10 {
		t.Errorf("only %d scripts: %v", len(found), err)
	}
}
