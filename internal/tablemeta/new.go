package tablemeta

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/rawjson"
	"github.com/landfast/landfast/internal/schema"
)

// NewTable is what a client asks for when it creates a table.
type NewTable struct {
	UUID     string
	Location string
	// Schema, PartitionSpec and WriteOrder are JSON; the last two may be nil. Their
	// ids are the client's, and are not kept.
	Schema, PartitionSpec, WriteOrder []byte
	// Properties may ask for a format-version.
	Properties map[string]string
	// Now is the server's time. It is used to the millisecond.
	Now time.Time
}

const parquetCompression = "write.parquet.compression-codec"

// reserved properties ask for something when a table is made. They are not kept.
var reserved = map[string]bool{
	"format-version": true, "uuid": true, "snapshot-count": true,
	"current-snapshot-id": true, "current-snapshot-summary": true, "current-snapshot-timestamp-ms": true,
	"current-schema": true, "default-partition-spec": true, "default-sort-order": true,
}

// New is the first metadata of a table: its columns numbered from 1, its spec
// and sort order following them by name, without snapshots.
// Errors are [*InvalidError].
func New(t NewTable) (*Metadata, error) {
	b := &builder{now: t.Now.UnixMilli()}
	b.formatVersion, b.currentSnapshot = formatDefault, noSnapshot
	b.uuid, b.location = t.UUID, stripTrailingSlash(t.Location)
	if text, ok := t.Properties["format-version"]; ok {
		version, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return nil, invalid("Table property format-version must have integer value: %s", excerpt(text))
		}
		if version < formatMin || version > formatCreateMax {
			return nil, invalid("Unsupported format version: v%d (supported: v%d)", version, formatCreateMax)
		}
		b.formatVersion = int(version)
	}
	fresh, err := b.setLayout(t)
	if err != nil {
		return nil, err
	}
	if err := b.setNewProperties(t.Properties, fresh); err != nil {
		return nil, err
	}
	if err := b.finish(Change{}); err != nil {
		return nil, err
	}
	m := b.render()
	if err := rawjson.CheckLimits(m.doc); err != nil {
		return nil, &InvalidError{Message: "Invalid table: " + err.Error(), Err: err}
	}
	return m, nil
}

// setLayout returns the table's schema.
func (b *builder) setLayout(t NewTable) (*schema.Schema, error) {
	if t.Schema == nil {
		return nil, invalid("Invalid schema: null")
	}
	requested, err := schema.Parse(t.Schema)
	if err != nil {
		return nil, invalidBecause(err)
	}
	spec, order := schema.Unpartitioned(), schema.Unsorted()
	if t.PartitionSpec != nil {
		if spec, err = schema.ParseSpec(t.PartitionSpec); err != nil {
			return nil, invalidBecause(err)
		}
	}
	if t.WriteOrder != nil {
		if order, err = schema.ParseSortOrder(t.WriteOrder); err != nil {
			return nil, invalidBecause(err)
		}
	}
	fresh := requested.AssignFreshIDs()
	if spec, err = spec.Fresh(requested, fresh); err != nil {
		return nil, invalidBecause(err)
	}
	if order, err = order.Fresh(requested, fresh); err != nil {
		return nil, invalidBecause(err)
	}
	for _, err := range []error{fresh.CheckFormat(b.formatVersion), spec.CheckFormat(b.formatVersion), order.CheckSources()} {
		if err != nil {
			return nil, invalidBecause(err)
		}
	}
	b.schemas.add(fresh.ID(), fresh.JSON())
	b.currentSchemaID, b.lastColumnID = fresh.ID(), fresh.HighestFieldID()
	b.specs.add(spec.ID(), spec.JSON())
	b.defaultSpecID, b.lastPartitionID = spec.ID(), spec.LastAssignedID()
	b.orders.add(order.ID(), order.JSON())
	b.defaultOrderID = order.ID()
	return fresh, nil
}

// commitProperties are read by clients, which fail when they are no numbers.
var commitProperties = []string{
	"commit.retry.num-retries", "commit.retry.min-wait-ms", "commit.retry.max-wait-ms", "commit.retry.total-timeout-ms",
}

// encryptionProperties mean something from format version 3 on.
var encryptionProperties = []string{"encryption.data-key-length", "encryption.key-id"}

const columnMetrics = "write.metadata.metrics.column."

func (b *builder) setNewProperties(requested map[string]string, columns *schema.Schema) error {
	properties := map[string]string{parquetCompression: "zstd"}
	for key, value := range requested {
		if !reserved[key] {
			properties[key] = value
		}
	}
	keys := slices.Sorted(maps.Keys(properties))
	for _, key := range commitProperties {
		value, ok := properties[key]
		if !ok {
			continue
		}
		n, err := strconv.ParseInt(value, 10, 32)
		if err != nil {
			return invalid("Table property %s must have integer value", key)
		}
		if n < 0 {
			return invalid("Table property %s must have non negative integer value", key)
		}
	}
	var encryption []string
	for _, key := range encryptionProperties {
		if _, ok := properties[key]; ok {
			encryption = append(encryption, key)
		}
	}
	if b.formatVersion < 3 && encryption != nil {
		return invalid("Invalid properties for v%d: %v", b.formatVersion, encryption)
	}
	for _, key := range keys {
		column, ok := strings.CutPrefix(key, columnMetrics)
		if !ok {
			continue
		}
		if _, ok := columns.FieldByName(column); !ok {
			return invalid("Invalid metrics config, could not find column %s from table prop %s in schema", excerpt(column), excerpt(key))
		}
	}
	for _, key := range keys {
		b.properties.add(key, rawjson.AppendString(nil, properties[key]))
	}
	return nil
}

// String is for logs and messages: which table, and how far it has come.
func (m *Metadata) String() string {
	return fmt.Sprintf("table %s (v%d, %d snapshots, updated %d)", orNull(m.uuid), m.formatVersion, m.snapshots.len(), m.lastUpdated)
}
