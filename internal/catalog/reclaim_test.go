package catalog_test

import (
	"context"
	"slices"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/kernel/kerneltest"
	"github.com/landfast/landfast/internal/tablemeta"
)

// reclaim does at once what package reclaim does for tables without data: it
// deletes the metadata files that a list names, and ends the list.
func reclaim(ctx context.Context, run kernel.Runner, files *kerneltest.Files, warehouse, id string) error {
	find := &catalog.FindDying{Request: catalog.FindDyingRequest{Warehouse: warehouse, ID: id}}
	if err := run.Do(ctx, find); err != nil {
		return err
	}
	scope := find.Result.Scope
	for _, list := range find.Result.Lists {
		dying := list.Files
		if list.Metadata != "" {
			if data, err := files.Read(ctx, scope, list.Metadata, 1<<20); err == nil {
				m, err := tablemeta.Parse(data)
				if err != nil {
					return err
				}
				for _, e := range m.MetadataLog() {
					dying = append(dying, e.File)
				}
			}
			dying = append(dying, list.Metadata)
			in := func(location string) bool {
				c, err := scope.Canonical(location)
				return err == nil && slices.ContainsFunc(list.Places, func(p string) bool { return blob.Within(c, p) })
			}
			dying = slices.DeleteFunc(dying, func(f string) bool {
				if !in(f) {
					return true
				}
				data, err := files.Read(ctx, scope, f, 1<<20)
				m, parseErr := tablemeta.Parse(data)
				return err == nil && parseErr == nil && list.Registered && !in(m.Location())
			})
		}
		for _, f := range dying {
			if err := files.Delete(ctx, scope, f); err != nil {
				return err
			}
		}
	}
	return run.Do(ctx, &catalog.EndDying{Request: catalog.EndDyingRequest{Warehouse: warehouse, IDs: []string{id}}})
}
