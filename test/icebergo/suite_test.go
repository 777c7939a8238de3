package icebergo

import (
	"testing"

	"github.com/apache/iceberg-go/catalog"
	"github.com/apache/iceberg-go/catalog/catalogtest"
)

// TestCatalog is the conformance suite that iceberg-go has for every catalog.
func TestCatalog(t *testing.T) {
	catalogtest.RunCatalogTests(t, catalogtest.Config{
		NewCatalog:                  func(t *testing.T) catalog.Catalog { return connect(t, *warehouse) },
		SupportsNamespaceProperties: true,
	})
}
