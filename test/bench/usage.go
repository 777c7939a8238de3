package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
)

// usage is what a process has used since it began, or between two such moments.
type usage struct {
	cpuSeconds float64
	allocated  float64 // bytes
	cpuKnown   bool    // of a process that the bench started, where there is a /proc
	allocKnown bool    // where the process shows the metrics of Go
}

// allocatedMetric is the name under which Go programs show what they allocated.
const allocatedMetric = "go_memstats_alloc_bytes_total"

// ticksPerSecond is the unit of times in /proc on every Linux there is.
const ticksPerSecond = 100

// add adds what was used between two moments.
func (u *usage) add(began, ended usage) {
	u.cpuSeconds += ended.cpuSeconds - began.cpuSeconds
	u.allocated += ended.allocated - began.allocated
	u.cpuKnown, u.allocKnown = ended.cpuKnown, ended.allocKnown
}

// usage is what the process has used until now. That of no process is unknown.
func (p *process) usage(ctx context.Context) (u usage, err error) {
	if p == nil {
		return usage{}, nil
	}
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return usage{}, err
	default:
		if u.cpuSeconds, err = cpuSeconds(data); err != nil {
			return usage{}, err
		}
		u.cpuKnown = true
	}
	if p.metrics {
		body, _, err := call(ctx, http.MethodGet, "http://"+p.address+"/metrics", nil)
		if err != nil {
			return usage{}, err
		}
		if u.allocated, err = metric(body, allocatedMetric); err != nil {
			return usage{}, err
		}
		u.allocKnown = true
	}
	return u, nil
}

// cpuSeconds reads /proc/PID/stat: the time that all threads of a process spent,
// those that ended included.
func cpuSeconds(stat []byte) (float64, error) {
	// The name of the program is in parentheses and may hold anything.
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	const user, system = 11, 12 // of those after the name
	if len(fields) <= system {
		return 0, fmt.Errorf("%.100q is no /proc/PID/stat", stat)
	}
	var ticks int64
	for _, field := range fields[user : system+1] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("/proc/PID/stat: %w", err)
		}
		ticks += n
	}
	return float64(ticks) / ticksPerSecond, nil
}

// metric is the value of a metric without labels.
func metric(text []byte, name string) (float64, error) {
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+" ")); ok {
			return strconv.ParseFloat(string(bytes.TrimSpace(value)), 64)
		}
	}
	return 0, fmt.Errorf("the metrics lack %s", name)
}
