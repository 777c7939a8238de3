package crash

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"time"
)

// The server's wall clock can be set apart from the machine's. Nothing in the server
// knows of it: it is built with a time.Now whose wall clock, and not its monotonic one,
// is ahead by as many seconds as a file says that the process maps. So a change shows
// everywhere and at once, as when somebody sets the machine's clock; timers, and times
// since, go on as they do then.

// clockVariable names the file to the server.
const clockVariable = "CRASH_TESTS_CLOCK"

// clockSource is a file that is added to package time.
const clockSource = `package time

import (
	"sync/atomic"
	"syscall"
	"unsafe"
)

var aheadSeconds = func() *int64 {
	name, ok := syscall.Getenv("` + clockVariable + `")
	if !ok {
		return new(int64)
	}
	fd, err := syscall.Open(name, syscall.O_RDONLY, 0)
	if err != nil {
		panic("time: open " + name + ": " + err.Error())
	}
	page, err := syscall.Mmap(fd, 0, 8, syscall.PROT_READ, syscall.MAP_SHARED)
	if err != nil {
		panic("time: map " + name + ": " + err.Error())
	}
	return (*int64)(unsafe.Pointer(&page[0]))
}()

func ahead() int64 { return atomic.LoadInt64(aheadSeconds) }
`

// clockOverlay writes the changed package time to a directory and returns the file to
// give to go build -overlay.
func clockOverlay(goroot, dir string) (string, error) {
	const now = "func Now() Time {\n\tsec, nsec, mono := runtimeNow()\n"
	original := filepath.Join(goroot, "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if bytes.Count(source, []byte(now)) != 1 {
		return "", errors.New(original + " is not as these tests know it: adapt clockOverlay to this version of Go")
	}
	source = bytes.Replace(source, []byte(now), []byte(now+"\tsec += ahead()\n"), 1)
	changed, added, overlay := filepath.Join(dir, "time.go"), filepath.Join(dir, "ahead.go"), filepath.Join(dir, "overlay.json")
	replace, err := json.Marshal(map[string]map[string]string{"Replace": {
		original: changed,
		filepath.Join(filepath.Dir(original), "ahead.go"): added,
	}})
	if err != nil {
		return "", err
	}
	for name, content := range map[string][]byte{changed: source, added: []byte(clockSource), overlay: replace} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			return "", err
		}
	}
	return overlay, nil
}

// clockName is the name of the fault.
const clockName = "clock"

// clock is the wall clock of a server.
type clock struct{ file string }

func newClock(file string) (clock, error) {
	c := clock{file}
	return c, os.WriteFile(file, make([]byte, 8), 0o600)
}

// set puts the clock ahead of the machine's; behind it, if that is negative.
func (c clock) set(ahead time.Duration) error {
	f, err := os.OpenFile(c.file, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = f.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead/time.Second)), 0)
	return errors.Join(err, f.Close())
}

// checkClock wants a server to say that its clock is so much ahead of the machine's.
func checkClock(url string, ahead time.Duration) error {
	asker := http.Client{Timeout: requestTimeout}
	res, err := asker.Get(url + "/healthz")
	if err != nil {
		return err
	}
	res.Body.Close()
	at, err := http.ParseTime(res.Header.Get("Date"))
	if err != nil {
		return err
	}
	if off := at.Sub(time.Now().Add(ahead)).Abs(); off > time.Minute {
		return fmt.Errorf("the server's clock is %v from where it was set", off)
	}
	return nil
}
