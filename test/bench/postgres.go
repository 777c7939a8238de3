package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"

	"github.com/landfast/landfast/internal/store/postgres/pgtest"
)

// What -with calls Landfast with its records in PostgreSQL: one instance, and three of one catalog.
const (
	onPostgres      = "landfast-postgres"
	threeOnPostgres = "landfast-postgres-3"
)

func startOnPostgres(ctx context.Context, s *site) (string, *process, error) {
	return s.startInstances(ctx, onPostgres, 1)
}

func startThreeOnPostgres(ctx context.Context, s *site) (string, *process, error) {
	return s.startInstances(ctx, threeOnPostgres, 3)
}

// startInstances starts a PostgreSQL server with its defaults and instances of a catalog on it, with their files in the site's
// directory. The CPU that is shown is that of the first of them, without PostgreSQL's.
func (s *site) startInstances(ctx context.Context, name string, n int) (string, *process, error) {
	cluster, err := pgtest.Start()
	if err != nil {
		return "", nil, err
	}
	s.clusters = append(s.clusters, cluster)
	return s.startInstancesOn(ctx, cluster, name, n)
}

// startInstancesOn starts instances on a PostgreSQL server, which has no others.
func (s *site) startInstancesOn(ctx context.Context, cluster *pgtest.Cluster, name string, n int) (string, *process, error) {
	binary, err := s.program(ctx)
	if err != nil {
		return "", nil, err
	}
	lake, err := s.path(name)
	if err != nil {
		return "", nil, err
	}
	var first *process
	for i := range n {
		address, err := freeAddress()
		if err != nil {
			return "", nil, err
		}
		cmd := exec.Command(binary, "serve", "--store", "postgres", "--postgres-url", cluster.URL("postgres"),
			"--warehouse-main-location", "file://"+lake, "--listen", address)
		p, err := s.startPackaged(ctx, fmt.Sprint(name, "-", i), address, "/readyz", cmd)
		if err != nil {
			return "", nil, err
		}
		p.metrics = true
		if first == nil {
			first = p
			continue
		}
		if s.others == nil {
			s.others = map[string][]string{}
		}
		s.others[name] = append(s.others[name], address)
	}
	return "http://" + first.address, first, nil
}

// stopClusters ends the PostgreSQL servers that were started.
func (s *site) stopClusters() (err error) {
	for _, c := range s.clusters {
		err = errors.Join(err, c.Stop())
	}
	return err
}
