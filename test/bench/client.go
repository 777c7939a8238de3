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
	address string   // to connect to when it is first used
	conn    net.Conn // nil until then
	r       *bufio.Reader
	body    []byte // of the last answer that was fetched
}

// exchangeMax bounds one request and its answer.
const exchangeMax = 90 * time.Second

// newClient is a client that connects when it is first used: servers end
// connections on which nothing comes while a row is prepared.
func newClient(address string) *client { return &client{address: address} }

func (c *client) dial() error {
	conn, err := net.DialTimeout("tcp", c.address, 5*time.Second)
	if err == nil {
		c.use(conn)
	}
	return err
}

// use gives the client its connection.
func (c *client) use(conn net.Conn) {
	c.conn, c.r = conn, bufio.NewReaderSize(conn, 64<<10)
}

// hangUp ends the connection, from which everything was read that counts.
func (c *client) hangUp() {
	if c.conn != nil {
		_ = c.conn.Close()
	}
}

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
	status, length, err = c.send(request, func(n int) error {
		_, err := c.r.Discard(n)
		return err
	})
	return status, length, err
}

// fetch sends a request and returns the answer's body, which is valid until the next fetch.
func (c *client) fetch(request []byte) (status int, body []byte, err error) {
	c.body = c.body[:0]
	status, _, err = c.send(request, func(n int) error {
		at := len(c.body)
		c.body = append(c.body, make([]byte, n)...)
		_, err := io.ReadFull(c.r, c.body[at:])
		return err
	})
	return status, c.body, err
}

// send sends a request and lets take take each part of the answer's body.
func (c *client) send(request []byte, take func(n int) error) (status, length int, err error) {
	if c.conn == nil {
		if err := c.dial(); err != nil {
			return 0, 0, err
		}
	}
	if err := c.conn.SetDeadline(time.Now().Add(exchangeMax)); err != nil {
		return 0, 0, err
	}
	if _, err := c.conn.Write(request); err != nil {
		return 0, 0, err
	}
	if status, length, err = c.head(); err != nil {
		return 0, 0, fmt.Errorf("read the answer: %w", err)
	}
	if length == chunked {
		length, err = c.chunks(take)
	} else {
		err = take(length)
	}
	if err != nil {
		return 0, 0, fmt.Errorf("read the answer's body: %w", err)
	}
	return status, length, nil
}

// chunked stands for the length of a body that comes in chunks.
const chunked = -1

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
	const unknown = -2
	length = unknown
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
		is := func(wantName, wantValue string) bool {
			return strings.EqualFold(string(name), wantName) && strings.EqualFold(string(bytes.TrimSpace(value)), wantValue)
		}
		switch {
		case length == unknown && strings.EqualFold(string(name), "Content-Length"):
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return 0, 0, fmt.Errorf("header %q", line)
			}
		case length == unknown && is("Transfer-Encoding", "chunked"):
			length = chunked
		case is("Connection", "close"):
			return 0, 0, fmt.Errorf("status %d, and the server ends the connection", status)
		}
	}
	if length == unknown {
		return 0, 0, errors.New("the answer has no Content-Length")
	}
	return status, length, nil
}

// chunks reads a body that comes in chunks.
func (c *client) chunks(take func(n int) error) (length int, err error) {
	for {
		line, err := c.line()
		if err != nil {
			return 0, err
		}
		digits, _, _ := bytes.Cut(line, []byte{';'})
		n, err := strconv.ParseUint(string(bytes.TrimSpace(digits)), 16, 31)
		if err != nil {
			return 0, fmt.Errorf("size of a chunk %q", line)
		}
		if err := take(int(n)); err != nil {
			return 0, err
		}
		length += int(n)
		// The end of a chunk; after the last one, trailers and an empty line.
		for last := n == 0; ; {
			line, err := c.line()
			if err != nil {
				return 0, err
			}
			if len(line) == 0 {
				break
			}
			if !last {
				return 0, fmt.Errorf("%q after a chunk", line)
			}
		}
		if n == 0 {
			return length, nil
		}
	}
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
