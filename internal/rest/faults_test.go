package rest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/kernel"
	"github.com/landfast/landfast/internal/lock/locktest"
	"github.com/landfast/landfast/internal/store"
)

// The tests of this file are those of docs/faults.md that fit nowhere else: what
// other catalogs got wrong, asked of the whole server.

// tableAnswer is what an answer says about a table, as far as these tests ask.
type tableAnswer struct {
	MetadataLocation string `json:"metadata-location"`
	Metadata         struct {
		FormatVersion      int             `json:"format-version"`
		Location           string          `json:"location"`
		LastColumnID       int             `json:"last-column-id"`
		LastSequenceNumber *int64          `json:"last-sequence-number"`
		NextRowID          *int64          `json:"next-row-id"`
		CurrentSnapshotID  json.RawMessage `json:"current-snapshot-id"`
		Schemas            []struct {
			Fields []struct {
				ID   int    `json:"id"`
				Name string `json:"name"`
			} `json:"fields"`
		} `json:"schemas"`
		PartitionSpecs []struct {
			ID     int `json:"spec-id"`
			Fields []struct {
				FieldID int `json:"field-id"`
			} `json:"fields"`
		} `json:"partition-specs"`
		Properties map[string]string `json:"properties"`
		Refs       map[string]struct {
			SnapshotID int64 `json:"snapshot-id"`
		} `json:"refs"`
		Snapshots []struct {
			ID int64 `json:"snapshot-id"`
		} `json:"snapshots"`
		SnapshotLog []struct {
			ID int64 `json:"snapshot-id"`
		} `json:"snapshot-log"`
		MetadataLog []struct {
			File string `json:"metadata-file"`
		} `json:"metadata-log"`
		Statistics []struct {
			SnapshotID int64 `json:"snapshot-id"`
		} `json:"statistics"`
		PartitionStatistics []struct {
			SnapshotID int64 `json:"snapshot-id"`
		} `json:"partition-statistics"`
	} `json:"metadata"`
	Config             map[string]string `json:"config"`
	StorageCredentials []any             `json:"storage-credentials"`
}

func (s *stack) table(request string) tableAnswer {
	s.Helper()
	var a tableAnswer
	if err := json.Unmarshal([]byte(s.must(request).body), &a); err != nil {
		s.Fatal(err)
	}
	return a
}

const theTable = "/v1/namespaces/sea/tables/t"

// commit is a request with updates and no requirements.
func commit(updates ...string) string {
	return "POST " + theTable + "\n\n" + `{"requirements":[],"updates":[` + strings.Join(updates, ",") + `]}`
}

// appendTo adds a snapshot to main. Its parent is the one with the id before.
func appendTo(id int64) []string {
	parent := ""
	if id > 1 {
		parent = fmt.Sprintf(`"parent-snapshot-id":%d,`, id-1)
	}
	return []string{
		fmt.Sprintf(`{"action":"add-snapshot","snapshot":{"snapshot-id":%[1]d,%[2]s"sequence-number":%[1]d,"timestamp-ms":%[3]d,"manifest-list":"file:///m/%[1]d.avro","summary":{"operation":"append"},"schema-id":0}}`,
			id, parent, 1_700_000_000_000+id),
		fmt.Sprintf(`{"action":"set-snapshot-ref","ref-name":"main","type":"branch","snapshot-id":%d}`, id),
	}
}

// TestNamespacesOfAnyDepth: tables live in namespaces of one level and of many,
// and each namespace keeps what is in it.
func TestNamespacesOfAnyDepth(t *testing.T) {
	s := newStack(t)
	var levels []string
	for depth := 1; depth <= 6; depth++ {
		levels = append(levels, fmt.Sprintf("n%d", depth))
		name, err := json.Marshal(levels)
		if err != nil {
			t.Fatal(err)
		}
		path := "/v1/namespaces/" + strings.Join(levels, "%1F")
		s.must("POST /v1/namespaces\n\n" + fmt.Sprintf(`{"namespace":%s}`, name))
		s.must("POST " + path + "/tables\n\n" + `{"name":"t","schema":` + tableSchema + `}`)
		s.must("POST " + path + "/tables/t\n\n" + setProperty)
		s.must("POST /v1/tables/rename\n\n" + fmt.Sprintf(`{"source":{"namespace":%s,"name":"t"},"destination":{"namespace":%[1]s,"name":"u"}}`, name))
		want := fmt.Sprintf(`{"identifiers":[{"namespace":%s,"name":"u"}],"next-page-token":null}`, name)
		if got := s.must("GET " + path + "/tables"); got.body != want {
			t.Errorf("got %s\nwant %s", got.body, want)
		}
	}
	for depth := len(levels); depth > 0; depth-- {
		path := "/v1/namespaces/" + strings.Join(levels[:depth], "%1F")
		checkRefusal(t, s.send("DELETE "+path), 409, "NamespaceNotEmptyException", "is not empty")
		s.must("DELETE " + path + "/tables/u")
		s.must("DELETE " + path)
	}
}

// TestRefsOnly: snapshots=refs leaves out the snapshots that no ref names, and
// nothing else; its tag is another than that of the whole table.
func TestRefsOnly(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	for id := range int64(3) {
		s.must(commit(appendTo(id + 1)...))
	}
	s.must(commit(`{"action":"set-snapshot-ref","ref-name":"mark","type":"tag","snapshot-id":1}`))
	ids := func(request string) (list []int64) {
		for _, snapshot := range s.table(request).Metadata.Snapshots {
			list = append(list, snapshot.ID)
		}
		return list
	}
	all, refs := "GET "+theTable, "GET "+theTable+"?snapshots=refs"
	if diff := cmp.Diff([]int64{1, 2, 3}, ids(all)); diff != "" {
		t.Errorf("all: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]int64{1, 3}, ids(refs)); diff != "" {
		t.Errorf("refs: -want +got\n%s", diff)
	}
	if a, r := s.must(all).Header.Get("ETag"), s.must(refs).Header.Get("ETag"); a == r || a == "" || r == "" {
		t.Errorf("the tags are %s and %s", a, r)
	}
	if log := s.table(refs).Metadata.SnapshotLog; len(log) != 3 {
		t.Errorf("the log of refs is %v", log)
	}
}

// TestHistory: every snapshot that main had is in the table and in its log.
func TestHistory(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	for id := range int64(5) {
		s.must(commit(appendTo(id + 1)...))
	}
	table := s.table("GET " + theTable).Metadata
	var log, snapshots []int64
	for i := range table.SnapshotLog {
		log, snapshots = append(log, table.SnapshotLog[i].ID), append(snapshots, table.Snapshots[i].ID)
	}
	want := []int64{1, 2, 3, 4, 5}
	if diff := cmp.Diff([][]int64{want, want}, [][]int64{log, snapshots}); diff != "" {
		t.Errorf("log and snapshots: -want +got\n%s", diff)
	}
	if table.Refs["main"].SnapshotID != 5 || string(table.CurrentSnapshotID) != "5" {
		t.Errorf("main is %v, current %s", table.Refs["main"], table.CurrentSnapshotID)
	}
}

// TestRemovedSnapshot: with a snapshot go its statistics and the refs to it.
func TestRemovedSnapshot(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	for id := range int64(3) {
		s.must(commit(appendTo(id + 1)...))
	}
	s.must(commit(
		`{"action":"set-snapshot-ref","ref-name":"side","type":"branch","snapshot-id":2}`,
		`{"action":"set-statistics","statistics":{"snapshot-id":2,"statistics-path":"file:///m/2.puffin","file-size-in-bytes":1,"file-footer-size-in-bytes":1,"blob-metadata":[]}}`,
		`{"action":"set-partition-statistics","partition-statistics":{"snapshot-id":2,"statistics-path":"file:///m/2.parquet","file-size-in-bytes":1}}`,
	))
	table := s.table(commit(`{"action":"remove-snapshots","snapshot-ids":[2,7]}`)).Metadata
	if len(table.Snapshots) != 2 || len(table.Refs) != 1 || len(table.Statistics) != 0 || len(table.PartitionStatistics) != 0 {
		t.Errorf("left: %+v", table)
	}
	// What was before a hole in the log cannot be reached by it any more.
	if len(table.SnapshotLog) != 1 || table.SnapshotLog[0].ID != 3 {
		t.Errorf("the log is %v", table.SnapshotLog)
	}
	table = s.table(commit(`{"action":"remove-snapshots","snapshot-ids":[1,3]}`)).Metadata
	if len(table.Snapshots) != 0 || len(table.Refs) != 0 || string(table.CurrentSnapshotID) != "-1" {
		t.Errorf("left: %+v", table)
	}
}

// TestOneMetadata: create, commit and load tell one location, the file there holds
// what they say, and it has what its format version requires; properties that
// are not a table's do not become its own.
func TestOneMetadata(t *testing.T) {
	for version := 1; version <= 3; version++ {
		t.Run(fmt.Sprintf("v%d", version), func(t *testing.T) {
			s := newStack(t)
			s.must("POST /v1/namespaces\n\n" + `{"namespace":["sea"]}`)
			created := s.must("POST /v1/namespaces/sea/tables\n\n" + fmt.Sprintf(`{"name":"t","schema":%s,"properties":{"format-version":"%d","a":"1"}}`, tableSchema, version))
			same := func(answer reply) tableAnswer {
				t.Helper()
				var told, loaded struct {
					MetadataLocation string          `json:"metadata-location"`
					Metadata         json.RawMessage `json:"metadata"`
				}
				load := s.must("GET " + theTable)
				if err := errors.Join(json.Unmarshal([]byte(answer.body), &told), json.Unmarshal([]byte(load.body), &loaded)); err != nil {
					t.Fatal(err)
				}
				path, ok := strings.CutPrefix(told.MetadataLocation, "file://")
				if !ok {
					t.Fatalf("the metadata is at %s", told.MetadataLocation)
				}
				file, err := os.ReadFile(path)
				if err != nil {
					t.Fatal(err)
				}
				if told.MetadataLocation != loaded.MetadataLocation || !bytes.Equal(told.Metadata, loaded.Metadata) || !bytes.Equal(told.Metadata, file) {
					t.Errorf("the answer is %s\na load is %s\nthe file %s", answer.body, load.body, file)
				}
				if answer.Header.Get("ETag") != load.Header.Get("ETag") || load.Header.Get("ETag") == "" {
					t.Errorf("the tag is %q, that of a load %q", answer.Header.Get("ETag"), load.Header.Get("ETag"))
				}
				return s.table("GET " + theTable)
			}
			first := same(created)
			second := same(s.must(commit(`{"action":"set-properties","updates":{"b":"2"}}`)))
			if diff := cmp.Diff([]string{first.MetadataLocation}, logged(second)); diff != "" {
				t.Errorf("metadata log: -want +got\n%s", diff)
			}
			m := second.Metadata
			if m.FormatVersion != version || (m.LastSequenceNumber != nil) != (version >= 2) || (m.NextRowID != nil) != (version >= 3) {
				t.Errorf("version %d has %+v", version, m)
			}
			for name := range m.Properties {
				if !slices.Contains([]string{"a", "b", "write.parquet.compression-codec"}, name) {
					t.Errorf("the table has the property %s", name)
				}
			}
		})
	}
}

func logged(a tableAnswer) (files []string) {
	for _, entry := range a.Metadata.MetadataLog {
		files = append(files, entry.File)
	}
	return files
}

// TestMetadataLog: the log names the files before, as many as the table asks for.
func TestMetadataLog(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	s.must(commit(`{"action":"set-properties","updates":{"write.metadata.previous-versions-max":"3"}}`))
	var written []string
	for i := range 6 {
		written = append(written, s.table(commit(fmt.Sprintf(`{"action":"set-properties","updates":{"a":"%d"}}`, i))).MetadataLocation)
	}
	if diff := cmp.Diff(written[2:5], logged(s.table("GET "+theTable))); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

// TestMetadataCodec: the property decides whether metadata is compressed, the
// file's name says it, and every answer is the same.
func TestMetadataCodec(t *testing.T) {
	s := newStack(t)
	s.must("POST /v1/namespaces\n\n" + `{"namespace":["sea"]}`)
	s.must("POST /v1/namespaces/sea/tables\n\n" + `{"name":"t","schema":` + tableSchema + `,"properties":{"write.metadata.compression-codec":"gzip"}}`)
	check := func(suffix string, packed bool) {
		t.Helper()
		file := s.metadataFile(theTable)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasSuffix(file, suffix) || strings.Contains(file, ".gz") != packed || bytes.HasPrefix(data, []byte{0x1f, 0x8b}) != packed {
			t.Errorf("%s begins with %x", file, data[:2])
		}
	}
	check(".gz.metadata.json", true)
	s.must(commit(`{"action":"set-properties","updates":{"write.metadata.compression-codec":"NONE"}}`))
	check(".metadata.json", false)
	s.must(commit(`{"action":"set-properties","updates":{"write.metadata.compression-codec":"GZIP"}}`))
	check(".gz.metadata.json", true)
	s.must(commit(`{"action":"remove-properties","removals":["write.metadata.compression-codec"]}`))
	check(".metadata.json", false)
}

// TestFieldIDs: a create assigns field ids afresh, from 1; a commit, also one that
// creates a staged table, keeps those of its client.
func TestFieldIDs(t *testing.T) {
	s := newStack(t)
	s.must("POST /v1/namespaces\n\n" + `{"namespace":["sea"]}`)
	const schema = `{"type":"struct","schema-id":7,"fields":[{"id":30,"name":"a","required":true,"type":"long"},{"id":40,"name":"b","required":false,"type":"string"}]}`
	ids := func(a tableAnswer) (list []int) {
		for _, f := range a.Metadata.Schemas[0].Fields {
			list = append(list, f.ID)
		}
		return append(list, a.Metadata.LastColumnID)
	}
	created := s.table("POST /v1/namespaces/sea/tables\n\n" + `{"name":"u","schema":` + schema + `}`)
	if diff := cmp.Diff([]int{1, 2, 2}, ids(created)); diff != "" {
		t.Errorf("create: -want +got\n%s", diff)
	}
	staged := s.table("POST " + theTable + "\n\n" + `{"requirements":[{"type":"assert-create"}],"updates":[` +
		`{"action":"assign-uuid","uuid":"22222222-2222-4222-8222-222222222222"},{"action":"upgrade-format-version","format-version":2},` +
		`{"action":"add-schema","schema":` + schema + `},{"action":"set-current-schema","schema-id":-1},` +
		`{"action":"add-spec","spec":{"fields":[]}},{"action":"set-default-spec","spec-id":-1},` +
		`{"action":"add-sort-order","sort-order":{"order-id":0,"fields":[]}},{"action":"set-default-sort-order","sort-order-id":-1},` +
		`{"action":"set-location","location":"file://` + s.root + `/main/sea/t"}]}`)
	if diff := cmp.Diff([]int{30, 40, 40}, ids(staged)); diff != "" {
		t.Errorf("staged: -want +got\n%s", diff)
	}
	if len(staged.Metadata.MetadataLog) != 0 {
		t.Errorf("a table that was just made has a log: %v", staged.Metadata.MetadataLog)
	}
}

// TestSpecWithoutFieldIDs: clients leave the assignment of partition field ids to the server.
func TestSpecWithoutFieldIDs(t *testing.T) {
	s := newStack(t)
	s.must("POST /v1/namespaces\n\n" + `{"namespace":["sea"]}`)
	created := s.table("POST /v1/namespaces/sea/tables\n\n" + `{"name":"t","schema":` + tableSchema + `,"partition-spec":{"fields":[{"source-id":1,"name":"p","transform":"bucket[4]"},{"source-id":1,"name":"q","transform":"identity"}]}}`)
	changed := s.table(commit(`{"action":"add-spec","spec":{"fields":[{"source-id":1,"name":"r","transform":"bucket[8]"}]}}`))
	var got []int
	for _, spec := range changed.Metadata.PartitionSpecs {
		for _, f := range spec.Fields {
			got = append(got, f.FieldID)
		}
	}
	if diff := cmp.Diff([]int{1000, 1001, 1002}, got); diff != "" || len(created.Metadata.PartitionSpecs) != 1 {
		t.Errorf("field ids: -want +got\n%s", diff)
	}
}

// TestNoCurrentSnapshot: -1, as tables without a snapshot have it in their
// metadata, is the id of nothing.
func TestNoCurrentSnapshot(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	file := s.metadataFile(theTable)
	data, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(data), `"current-snapshot-id":-1`) {
		t.Fatalf("%v %s", err, data)
	}
	s.must("DELETE " + theTable)
	s.must("POST /v1/namespaces/sea/register\n\n" + `{"name":"t","metadata-location":"file://` + file + `"}`)
	if got := s.table("GET " + theTable).Metadata; len(got.Refs) != 0 || len(got.Snapshots) != 0 {
		t.Errorf("registered: %+v", got)
	}
	checkRefusal(t, s.send("POST "+theTable+"\n\n"+`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":-1}],"updates":[]}`),
		409, "CommitFailedException", "branch or tag main is missing")
	body := `{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":null}],"updates":[` + strings.Join(appendTo(1), ",") + `]}`
	if got := s.table("POST " + theTable + "\n\n" + body).Metadata; got.Refs["main"].SnapshotID != 1 || len(got.SnapshotLog) != 1 {
		t.Errorf("after the first snapshot: %+v", got)
	}
	checkRefusal(t, s.send("POST "+theTable+"\n\n"+body), 409, "CommitFailedException", "branch main was created concurrently")
}

// TestCaseOnlyRename: names that differ in case are two names.
func TestCaseOnlyRename(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	s.must("POST /v1/tables/rename\n\n" + `{"source":{"namespace":["sea"],"name":"t"},"destination":{"namespace":["sea"],"name":"T"}}`)
	s.must("POST /v1/namespaces/sea/tables\n\n" + `{"name":"t","schema":` + tableSchema + `}`)
	upper, lower := s.table("GET /v1/namespaces/sea/tables/T"), s.table("GET "+theTable)
	if upper.Metadata.Location == lower.Metadata.Location {
		t.Errorf("both are at %s", upper.Metadata.Location)
	}
}

// TestDelegationHeader: no client gets credentials or is told to sign, whatever it asks for.
func TestDelegationHeader(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	want := s.must("GET " + theTable).body
	for _, header := range []string{"", "vended-credentials", "remote-signing", "vended-credentials,remote-signing", "nonsense"} {
		request := "GET " + theTable + "\nX-Iceberg-Access-Delegation: " + header
		if got := s.must(request); got.body != want {
			t.Errorf("%q: %s", header, got.body)
		}
		if a := s.table(request); len(a.StorageCredentials) != 0 || a.Config["s3.remote-signing-enabled"] != "" || a.Config["token"] != "" {
			t.Errorf("%q: %v %v", header, a.Config, a.StorageCredentials)
		}
	}
}

// TestDropsThatFail: a drop that did not happen does not say that there was nothing.
func TestDropsThatFail(t *testing.T) {
	for _, tc := range []struct {
		err    error
		status int
		kind   string
	}{
		{store.ErrOutcomeUnknown, 500, "CommitStateUnknownException"},
		{store.ErrClosed, 429, "TooManyRequestsException"},
		{store.ErrFull, 507, "InsufficientStorageException"},
		{errors.New("broken"), 500, "InternalServerError"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			s := newStack(t)
			s.seaWithTable()
			s.must("POST /v1/namespaces\n\n" + `{"namespace":["land"]}`)
			breakStore(s.store, tc.err)
			s.store.OutcomeFault = func(string) error { return tc.err }
			for _, path := range []string{theTable, theTable + "?purgeRequested=true", "/v1/namespaces/land"} {
				checkRefusal(t, s.send("DELETE "+path), tc.status, tc.kind, "")
			}
			s.store.Fault, s.store.OutcomeFault = nil, nil
			s.must("HEAD " + theTable)
			s.must("HEAD /v1/namespaces/land")
		})
	}
}

// another is a further server over the same store and the same files. It shares no
// memory with the first, as after a restart.
func (s *stack) another(change ...func(*Options)) *Handler {
	opt := Options{
		Runner: kernel.New(kernel.Options{Store: s.store, Files: s.files, Queue: locktest.Yes{}, Now: func() time.Time {
			s.mu.Lock()
			defer s.mu.Unlock()
			return s.clock
		}}),
		Reclaimer: noReclaim{}, Roots: s.files, WarehouseRoot: func(string) string { return "" },
		IdempotencyLifetime: s.handler.opt.IdempotencyLifetime,
	}
	for _, f := range change {
		f(&opt)
	}
	return New(opt)
}

// TestRequirementsOfAnotherServer: a requirement is checked against what the store
// holds, also when another server changed it since this one looked.
func TestRequirementsOfAnotherServer(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	s.must(commit(appendTo(1)...))
	_, body, _ := strings.Cut(commit(appendTo(2)...), "\n\n")
	if w, _ := serve(s.another(), "POST", theTable, body); w.Code != http.StatusOK {
		t.Fatalf("%d %s", w.Code, w.Body)
	}
	require := func(id int) string {
		return "POST " + theTable + "\n\n" + fmt.Sprintf(`{"requirements":[{"type":"assert-ref-snapshot-id","ref":"main","snapshot-id":%d}],"updates":[{"action":"set-properties","updates":{"a":"1"}}]}`, id)
	}
	checkRefusal(t, s.send(require(1)), 409, "CommitFailedException", "branch main has changed: expected id 1 != 2")
	s.must(require(2))
}

// TestKeyOutlivesItsServer: what a key stands for is in the store. Another server,
// which knows nothing else of the request, gives the answer again and changes nothing.
func TestKeyOutlivesItsServer(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	const key = "0197e2b8-6c1a-7cc3-9a5e-3d1b5f0f8a11"
	request := commit(appendTo(1)...)
	head, body, _ := strings.Cut(request, "\n\n")
	first := s.must(head + "\n" + idempotencyHeader + ": " + key + "\n\n" + body)
	s.must("DELETE " + theTable)
	before := s.state()
	w, _ := serve(s.another(), "POST", theTable, body, idempotencyHeader, key)
	if w.Code != http.StatusOK || w.Body.String() != first.body {
		t.Errorf("again: %d %s\nfirst: %s", w.Code, w.Body, first.body)
	}
	if diff := cmp.Diff(before, s.state()); diff != "" {
		t.Errorf("the second time changed something:\n%s", diff)
	}
	// Without the key it is a request for a table that is gone.
	if w, _ := serve(s.another(), "POST", theTable, body); w.Code != http.StatusNotFound {
		t.Errorf("without the key: %d %s", w.Code, w.Body)
	}
}

// TestNoFailureIsRemembered: a key whose request failed, or whose outcome was not
// known and is not there, may be sent again and then succeeds.
func TestNoFailureIsRemembered(t *testing.T) {
	for _, err := range []error{store.ErrOutcomeUnknown, store.ErrClosed, store.ErrFull, errors.New("broken")} {
		t.Run(err.Error(), func(t *testing.T) {
			s := newStack(t)
			const request = "POST /v1/namespaces\n" + idempotencyHeader + ": 0197e2b8-6c1a-7cc3-9a5e-3d1b5f0f8a11\n\n" + `{"namespace":["sea"]}`
			breakStore(s.store, err)
			s.store.OutcomeFault = func(string) error { return err }
			for range 2 {
				if got := s.send(request); got.StatusCode != 500 && got.StatusCode != 429 && got.StatusCode != 507 {
					t.Fatalf("%s %s", got.Status, got.body)
				}
			}
			s.store.Fault, s.store.OutcomeFault = nil, nil
			s.must(request)
			s.must("HEAD /v1/namespaces/sea")
			s.must(request)
		})
	}
}

// TestTagCoversConfig: a table is only unchanged while a client reaches its files
// in the same way. Otherwise 304 would keep alive what it was told before.
func TestTagCoversConfig(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	elsewhere := s.another(func(o *Options) {
		o.ClientConfig = func(context.Context, blob.Root) map[string]string {
			return map[string]string{"s3.endpoint": "http://127.0.0.1:1"}
		}
	})
	first, _ := serve(s.another(), "GET", theTable, "")
	second, _ := serve(elsewhere, "GET", theTable, "")
	// As it is spelled on the wire: Java's client finds it in no other way.
	spelled := func(w *httptest.ResponseRecorder) string {
		return strings.Join(map[string][]string(w.Header())["ETag"], "")
	}
	one, two := spelled(first), spelled(second)
	if one == two || one == "" || two == "" || !strings.Contains(second.Body.String(), `"s3.endpoint":"http://127.0.0.1:1"`) {
		t.Fatalf("the tags are %s and %s of %s", one, two, second.Body)
	}
	for _, tc := range []struct {
		h    *Handler
		tag  string
		want int
	}{{s.another(), one, 304}, {s.another(), two, 200}, {elsewhere, one, 200}, {elsewhere, two, 304}} {
		if w, _ := serve(tc.h, "GET", theTable, "", "If-None-Match", tc.tag); w.Code != tc.want {
			t.Errorf("%s: %d, want %d", tc.tag, w.Code, tc.want)
		}
	}
}

// TestRaces: of clients that do the same at one time as many succeed as can, and
// the others are told why not; nobody is told that the server failed.
func TestRaces(t *testing.T) {
	const clients = 8
	for _, tc := range []struct {
		name    string
		request string // %d is the number of the client
		want    map[int]int
	}{
		{"create", "POST /v1/namespaces/sea/tables\n\n" + `{"name":"u","schema":` + tableSchema + `,"properties":{"client":"%d"}}`, map[int]int{200: 1, 409: clients - 1}},
		{"create namespace", "POST /v1/namespaces\n\n" + `{"namespace":["land"],"properties":{"client":"%d"}}`, map[int]int{200: 1, 409: clients - 1}},
		{"properties", "POST /v1/namespaces/sea/properties\n\n" + `{"updates":{"p%d":"1"}}`, map[int]int{200: clients}},
		{"commits", commit(`{"action":"set-properties","updates":{"p%d":"1"}}`), map[int]int{200: clients}},
		{"commits with a requirement", "POST " + theTable + "\n\n" + `{"requirements":[{"type":"assert-last-assigned-field-id","last-assigned-field-id":1}],"updates":[{"action":"add-schema","schema":{"type":"struct","fields":[{"id":1,"name":"id","required":true,"type":"long"},{"id":2,"name":"c%d","required":false,"type":"long"}]}}]}`,
			map[int]int{200: 1, 409: clients - 1}},
		{"rename", "POST /v1/tables/rename\n\n" + `{"source":{"namespace":["sea"],"name":"t"},"destination":{"namespace":["sea"],"name":"u%d"}}`, map[int]int{204: 1, 404: clients - 1}},
		{"drop", "DELETE " + theTable + "?client=%d", map[int]int{204: 1, 404: clients - 1}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := newStack(t)
			s.seaWithTable()
			replies := make([]reply, clients)
			var all sync.WaitGroup
			for i := range replies {
				all.Go(func() { replies[i] = s.send(fmt.Sprintf(tc.request, i)) })
			}
			all.Wait()
			got := map[int]int{}
			for _, r := range replies {
				if r.Response != nil { // otherwise send has failed the test
					got[r.StatusCode]++
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("statuses: -want +got\n%s%s", diff, replies[0].body)
			}
		})
	}
}

const faultsFile = "../../docs/faults.md"

var (
	faultRow  = regexp.MustCompile(`^\| ([0-9]+) \| (.+) \| (.+) \|$`)
	faultTest = regexp.MustCompile("`([^` ]+) ([A-Za-z_0-9]+)(?:/([a-z0-9-]+))?`")
)

// TestFaultsDocument: docs/faults.md has 44 rows, and the tests that it names exist.
func TestFaultsDocument(t *testing.T) {
	next, named := 1, 0
	for line := range strings.Lines(readText(t, faultsFile)) {
		row := faultRow.FindStringSubmatch(strings.TrimSpace(line))
		if row == nil {
			continue
		}
		if row[1] != strconv.Itoa(next) {
			t.Errorf("after row %d comes row %s", next-1, row[1])
		}
		next++
		tests := faultTest.FindAllStringSubmatch(row[3], -1)
		if len(tests) == 0 {
			t.Errorf("fault %s has no test", row[1])
		}
		for _, test := range tests {
			named++
			if err := testExists(filepath.Join("../..", test[1]), test[2], test[3]); err != nil {
				t.Errorf("fault %s: %s: %v", row[1], test[0], err)
			}
		}
	}
	if next != 45 {
		t.Errorf("the last row is %d, want 44", next-1)
	}
	t.Logf("%d tests are named", named)
}

// testExists looks for a test in a Go package, or in a file of Python or Java. part
// is a subtest of a Go test: a file of testdata, or a name in the source.
func testExists(path, name, part string) error {
	switch filepath.Ext(path) {
	case ".py":
		return contains([]string{path}, "\ndef "+name+"(")
	case ".java":
		return contains([]string{path}, " void "+name+"(")
	}
	sources, err := filepath.Glob(filepath.Join(path, "*_test.go"))
	if err != nil {
		return err
	}
	if err := contains(sources, "\nfunc "+name+"(t *testing.T)"); err != nil || part == "" {
		return err
	}
	for _, pattern := range []string{"testdata/", "testdata/*/"} {
		if files, _ := filepath.Glob(filepath.Join(path, pattern, part+".txt")); len(files) > 0 {
			return nil
		}
	}
	return contains(sources, strconv.Quote(part))
}

// contains says whether one of the files has the text.
func contains(files []string, text string) error {
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		if bytes.Contains(data, []byte(text)) {
			return nil
		}
	}
	return fmt.Errorf("%q is in none of %d files", strings.TrimSpace(text), len(files))
}

// No site but the server's own can have a browser change something, with or without a body.
func TestCrossOrigin(t *testing.T) {
	s := newStack(t)
	s.seaWithTable()
	for _, header := range []string{"Origin: http://evil.example", "Sec-Fetch-Site: cross-site", "Sec-Fetch-Site: same-site"} {
		for _, request := range []string{
			"POST " + theTable + "/unregister", "DELETE " + theTable, "POST /management/v1/warehouses/main/sweep", "POST /v1/namespaces",
		} {
			got := s.send(request + "\n" + header + "\n")
			checkRefusal(t, got, 403, "ForbiddenException", "on behalf of another site")
		}
		s.must("GET " + theTable + "\n" + header + "\n")
	}
	s.must("DELETE " + theTable + "\nSec-Fetch-Site: same-origin\n")
}

// What is missing in millions of changes of a transaction is named for the first of them.
func TestManyBrokenChanges(t *testing.T) {
	s := newStack(t)
	got := s.send("POST /v1/transactions/commit\n\n" + `{"table-changes":[` + strings.Repeat("{},", 10_000) + `{}]}`)
	checkRefusal(t, got, 400, "BadRequestException", "table-changes[0].identifier")
	if len(got.body) > 1000 {
		t.Errorf("the answer has %d bytes", len(got.body))
	}
}
