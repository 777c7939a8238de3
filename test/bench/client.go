package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"strings"
	"time"
)

// client is one HTTP/1.1 connection that sends requests as the bytes they are and
// reads no more of an answer than it must. It costs a fraction of what net/http's
// client does, so that on a machine shared with the server it is the server that is
// measured. It is used by one goroutine at a time, and is of no use after an error.
type client struct {
	conn net.Conn
	r    *bufio.Reader
}

// exchangeMax bounds one request and its answer.
const exchangeMax = 90 * time.Second

func dial(address string) (*client, error) {
	conn, err := net.DialTimeout("tcp", address, 5*time.Second)
	if err != nil {
		return nil, err
	}
	return newClient(conn), nil
}

func newClient(conn net.Conn) *client {
	return &client{conn: conn, r: bufio.NewReaderSize(conn, 64<<10)}
}

// hangUp ends the connection, from which everything was read that counts.
func (c *client) hangUp() { _ = c.conn.Close() }

// request is the bytes of a request; a nil body is none.
func request(method, path string, body []byte, headers ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: 127.0.0.1\r\n", method, path)
	for _, h := range headers {
		fmt.Fprintf(&b, "%s\r\n", h)
	}
	if body != nil {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.Write(body)
	return b.Bytes()
}

// exchange sends a request and skips the answer's body, of which it returns the length.
func (c *client) exchange(request []byte) (status, length int, err error) {
	if err := c.conn.SetDeadline(time.Now().Add(exchangeMax)); err != nil {
		return 0, 0, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, 0, err
	}
	if status, length, err = c.head(); err != nil {
		return 0, 0, fmt.Errorf("read the answer: %w", err)
	}
	if _, err := c.r.Discard(length); err != nil {
		return 0, 0, fmt.Errorf("read the answer's body: %w", err)
	}
	return status, length, nil
}

// head reads the status line and the headers.
func (c *client) head() (status, length int, err error) {
	line, err := c.line()
	if err != nil {
		return 0, 0, err
	}
	_, rest, ok := bytes.Cut(line, []byte{' '})
	if !ok || len(rest) < 3 {
		return 0, 0, fmt.Errorf("status line %q", line)
	}
	if status, err = strconv.Atoi(string(rest[:3])); err != nil {
		return 0, 0, fmt.Errorf("status line %q", line)
	}
	length = -1
	if status == 204 || status == 304 {
		length = 0
	}
	for {
		line, err := c.line()
		if err != nil {
			return 0, 0, err
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte{':'})
		switch {
		case length != 0 && strings.EqualFold(string(name), "Content-Length"):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, fmt.Errorf("header %q", line)
			}
		case strings.EqualFold(string(name), "Connection") && strings.EqualFold(string(bytes.TrimSpace(value)), "close"):
			return 0, 0, fmt.Errorf("status %d, and the server ends the connection", status)
		}
	}
	if length < 0 {
		return 0, 0, errors.New("the answer has no Content-Length")
	}
	return status, length, nil
}

// line is the next line without its end. It is valid until the next read.
func (c *client) line() ([]byte, error) {
	line, err := c.r.ReadSlice('\n')
	if err == io.EOF && len(line) > 0 {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(line[:len(line)-1], []byte{'\r'}), nil
}
