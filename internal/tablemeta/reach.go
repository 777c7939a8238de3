package tablemeta

import (
	"iter"

	"github.com/landfast/landfast/internal/rawjson"
)

// This file holds which files a table's metadata names, for whoever deletes a table
// with its files. Former metadata files are in [Metadata.MetadataLog]; what manifest
// lists and manifests name is not looked at here.

// UUID is the table's uuid; empty in format version 1 if the table has none.
func (m *Metadata) UUID() string { return m.uuid }

// Property is the value of one of the table's properties.
func (m *Metadata) Property(name string) (value string, ok bool) { return m.property(name) }

// ManifestLists yields the locations of the manifest lists of all snapshots.
func (m *Metadata) ManifestLists() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range m.snapshots.entries {
			if list, ok := textMember(m.snapshots.value(i), "manifest-list"); ok && !yield(list) {
				return
			}
		}
	}
}

// InlineManifests yields the locations of the manifests that snapshots name themselves,
// as those of format version 1 may in place of a list. One location may come several times.
func (m *Metadata) InlineManifests() iter.Seq[string] {
	return func(yield func(string) bool) {
		for i := range m.snapshots.entries {
			snapshot := m.snapshots.value(i)
			if _, listed := textMember(snapshot, "manifest-list"); listed {
				continue
			}
			manifests, _ := rawjson.Lookup(snapshot, "manifests")
			for element := range rawjson.Elements(manifests) {
				if manifest, ok := rawjson.String(element); ok && !yield(manifest) {
					return
				}
			}
		}
	}
}

// StatisticsFiles yields the locations of the statistics files and partition
// statistics files of all snapshots.
func (m *Metadata) StatisticsFiles() iter.Seq[string] {
	return func(yield func(string) bool) {
		for _, files := range []*list[int64]{&m.statistics, &m.partitionStatistics} {
			for i := range files.entries {
				if path, ok := textMember(files.value(i), "statistics-path"); ok && !yield(path) {
					return
				}
			}
		}
	}
}

// textMember is a member of an object that is a string.
func textMember(object []byte, name string) (string, bool) {
	value, _ := rawjson.Lookup(object, name)
	return rawjson.String(value)
}
