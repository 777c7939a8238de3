package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
)

// floorName is how the floor is called among the sides of a row.
const floorName = "floor"

// least is what the floor has to do where a catalog answers a row's requests: the
// same number of clients, which read what comes back in the same way.
type least struct {
	clients int
	steps   []exchange
	apart   bool // each step is an operation of its own; otherwise all are one

	besideClients int
	beside        exchange

	// refresh brings the answer and the files of the last step up to date before a
	// turn. It is nil where they stay as they are.
	refresh func(context.Context) (answer, error)
}

// exchange is one request to the floor, and what it answers.
type exchange struct {
	answer answer
	write  bool // it makes files durable and has a body
	body   []byte
	known  bool // the client has it already
	read   func(body []byte) error
}

// sizes is n times a size.
func sizes(n, size int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = size
	}
	return list
}

// floorSide is the floor of a row.
func (s *site) floorSide(ctx context.Context, name string, ours *side) (*side, error) {
	l := ours.least
	x := &side{name: floorName, process: s.floor, bytes: ours.bytes}
	work := func(n int, steps []exchange, apart bool, name string) ([]worker, error) {
		var requests [][]byte
		for i, e := range steps {
			path := fmt.Sprintf("%s/%d", name, i)
			if err := s.setFloor(ctx, path, e.answer); err != nil {
				return nil, err
			}
			requests = append(requests, e.request(path))
		}
		conns := x.connect(s.floor.address, n)
		var workers []worker
		for i, c := range conns {
			at := i // the clients do not all begin with the same step
			workers = append(workers, func(statuses map[int]int) (bool, error) {
				if apart {
					at = (at + 1) % len(steps)
					return true, steps[at].perform(c, requests[at], statuses)
				}
				for i, e := range steps {
					if err := e.perform(c, requests[i], statuses); err != nil {
						return false, err
					}
				}
				return true, nil
			})
		}
		return workers, nil
	}
	var err error
	if x.workers, err = work(l.clients, l.steps, l.apart, name); err != nil {
		return x, err
	}
	if l.besideClients > 0 {
		if x.beside, err = work(l.besideClients, []exchange{l.beside}, false, name+"/beside"); err != nil {
			return x, err
		}
	}
	if l.refresh != nil {
		x.before = func(ctx context.Context) error {
			a, err := l.refresh(ctx)
			if err != nil {
				return err
			}
			x.bytes = a.files[0]
			return s.setFloor(ctx, fmt.Sprintf("%s/%d", name, len(l.steps)-1), a)
		}
	}
	return x, nil
}

func (e exchange) request(path string) []byte {
	switch {
	case e.write:
		return request(http.MethodPost, "/write/"+path, e.body)
	case e.known:
		return request(http.MethodGet, "/answer/"+path, nil, `If-None-Match: "known"`)
	}
	return request(http.MethodGet, "/answer/"+path, nil)
}

// perform makes the request. Any answer but success is an error.
func (e exchange) perform(c *client, request []byte, statuses map[int]int) error {
	status, err := 0, error(nil)
	if e.read == nil {
		status, _, err = c.exchange(request)
	} else {
		var body []byte
		if status, body, err = c.fetch(request); err == nil && succeeded(status) {
			err = e.read(body)
		}
	}
	if err == nil && !succeeded(status) {
		err = fmt.Errorf("the floor answered with status %d", status)
	}
	statuses[status]++
	return err
}

// setFloor gives the floor an answer and the sizes of the files it writes.
func (s *site) setFloor(ctx context.Context, name string, a answer) error {
	var files []string
	for _, size := range a.files {
		files = append(files, strconv.Itoa(size))
	}
	_, _, err := call(ctx, http.MethodPut, "http://"+s.floor.address+"/answer/"+name, a.body, filesHeader, strings.Join(files, ","))
	return err
}

// bodyOf is the body of a request, which is JSON.
func bodyOf(request []byte) []byte {
	_, body, _ := bytes.Cut(request, []byte("\r\n\r\n"))
	return body
}
