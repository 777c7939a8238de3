package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// site is what rows share: a directory, the program, the catalogs that are measured
// and one floor. Each is made when a row first asks for it.
type site struct {
	options options

	dir       string
	binary    string
	catalogs  []*catalog // Landfast first
	packaged  []*process // others that the bench started, in their order
	clusters  []*pgtest.Cluster
	others    map[string][]string // addresses of the further instances of a catalog
	landfast  *process
	floor     *process
	floorLife io.Closer
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

const (
	// mainData is the data directory of the Landfast that rows share.
	mainData = "data"
	// floorFiles is the directory of the floor's files.
	floorFiles = "floor"
	landfast   = "landfast"
)

// serve makes sure that the catalogs and the floor run.
func (s *site) serve(ctx context.Context) (err error) {
	if s.floor == nil {
		dir, err := s.path(floorFiles)
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
	if s.landfast != nil {
		return nil
	}
	if s.landfast, err = s.start(ctx, mainData); err != nil {
		return err
	}
	// Others may outlive this run, so that each run has a namespace of its own.
	namespace := fmt.Sprintf("bench_%d", time.Now().UnixMilli())
	add := func(name, base string, p *process) error {
		c, err := newCatalog(ctx, name, base, namespace)
		if err == nil {
			err = c.createNamespace(ctx)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		c.process, c.foreign, c.others = p, p != s.landfast, s.others[name]
		s.catalogs = append(s.catalogs, c)
		return nil
	}
	if err := add(landfast, "http://"+s.landfast.address, s.landfast); err != nil {
		return err
	}
	for _, name := range s.options.with {
		base, p, err := packagedCatalogs[name](ctx, s)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if err := add(name, base, p); err != nil {
			return err
		}
	}
	for _, u := range s.options.urls {
		if err := add(u.name, u.base, nil); err != nil {
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

// removeFloorFiles removes what the floor wrote in a row, which may be much.
func (s *site) removeFloorFiles() error {
	dir, err := s.path(floorFiles)
	if err != nil {
		return err
	}
	return errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o777))
}

// close ends what runs and removes the directory.
func (s *site) close() error {
	err := s.stopLandfast()
	for _, p := range slices.Backward(s.packaged) {
		p.end()
	}
	err = errors.Join(err, s.stopClusters())
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
