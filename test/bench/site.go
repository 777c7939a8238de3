package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// site is what rows share: a directory, the program, and one Landfast and one
// floor that run. Each is made when a row first asks for it.
type site struct {
	options options

	dir       string
	binary    string
	landfast  *process
	floor     *process
	floorLife io.Closer
	catalog   *catalog
	writers   map[string]*writer // by the name of the table and of the property
}

// path is a path in the site's directory, which is made.
func (s *site) path(name string) (string, error) {
	if s.dir == "" {
		dir, err := os.MkdirTemp(s.options.dir, "landfast-bench-")
		if err != nil {
			return "", err
		}
		if s.dir, err = filepath.EvalSymlinks(dir); err != nil {
			return "", err
		}
	}
	return filepath.Join(s.dir, name), nil
}

// program is the file to measure.
func (s *site) program(ctx context.Context) (string, error) {
	if s.binary == "" && s.options.binary != "" {
		s.binary = s.options.binary
	}
	if s.binary != "" {
		return s.binary, nil
	}
	dir, err := s.path("")
	if err == nil {
		s.binary, err = buildLandfast(ctx, dir)
	}
	return s.binary, err
}

// start starts a Landfast of its own on a named data directory.
func (s *site) start(ctx context.Context, data string) (*process, error) {
	binary, err := s.program(ctx)
	if err != nil {
		return nil, err
	}
	path, err := s.path(data)
	if err != nil {
		return nil, err
	}
	return startLandfast(ctx, binary, path)
}

// mainData is the data directory of the Landfast that rows share.
const mainData = "data"

// serve makes sure that Landfast and the floor run.
func (s *site) serve(ctx context.Context) (err error) {
	if s.landfast == nil {
		if s.landfast, err = s.start(ctx, mainData); err != nil {
			return err
		}
		s.writers = map[string]*writer{}
		s.catalog = newCatalog(s.landfast.address)
		if err := s.catalog.createNamespace(ctx); err != nil {
			return err
		}
	}
	if s.floor == nil {
		dir, err := s.path("floor")
		if err != nil {
			return err
		}
		if err := os.Mkdir(dir, 0o777); err != nil {
			return err
		}
		if s.floor, s.floorLife, err = startFloor(dir); err != nil {
			return err
		}
	}
	return nil
}

// stopLandfast ends the Landfast that rows share. No row that needs it comes after.
func (s *site) stopLandfast() error {
	if s.landfast == nil {
		return nil
	}
	p := s.landfast
	s.landfast = nil
	return p.stop()
}

// setFloor gives the floor an answer and the size of the file it writes.
func (s *site) setFloor(ctx context.Context, name string, a answer) error {
	_, _, err := call(ctx, "PUT", "http://"+s.floor.address+"/answer/"+name, a.body, fileBytesHeader, strconv.Itoa(a.fileBytes))
	return err
}

// clients opens n connections to an address. The caller ends them with hangUp.
func clients(address string, n int) (list []*client, hangUp func(), err error) {
	hangUp = func() {
		for _, c := range list {
			c.hangUp()
		}
	}
	for range n {
		c, err := dial(address)
		if err != nil {
			hangUp()
			return nil, nil, err
		}
		list = append(list, c)
	}
	return list, hangUp, nil
}

// close ends what runs and removes the directory.
func (s *site) close() error {
	err := s.stopLandfast()
	if s.floor != nil {
		err = errors.Join(err, s.floorLife.Close(), s.floor.stop())
	}
	if s.dir != "" {
		err = errors.Join(err, os.RemoveAll(s.dir))
	}
	if err != nil {
		return fmt.Errorf("clean up: %w", err)
	}
	return nil
}
