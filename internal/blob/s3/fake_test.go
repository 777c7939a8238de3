package s3

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob"
)

// fake is as little of an S3 server as shows what real ones do differently. It has one bucket and believes everybody.
type fake struct {
	replaces   bool // If-None-Match is ignored
	refuses    bool // If-None-Match is not implemented
	forgets    bool // metadata is not kept
	keeps      bool // nothing can be deleted
	full       bool
	quiet      bool // Content-Length is not told
	plainList  bool // keys are listed as they are, whatever was asked for
	endless    bool // every page says that there is another
	timeless   bool // a list says no times
	strayLists bool // a list has keys that were not asked for
	pageSize   int

	mu      sync.Mutex
	objects map[string]fakeObject
}

type fakeObject struct{ data, nonce string }

// start serves it and returns a root in it.
func (f *fake) start(t *testing.T) (*Store, blob.Root) {
	server := httptest.NewServer(f)
	t.Cleanup(func() {
		server.CloseClientConnections()
		server.Close()
	})
	options := blob.S3Options{Endpoint: server.URL, AccessKeyID: "anybody", SecretAccessKey: "anything"}
	return newStore(t, options, impatient), blob.Root{URI: "s3://bucket/lake"}
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	defer f.mu.Unlock()
	refuse := func(status int, code string) {
		w.WriteHeader(status)
		fmt.Fprintf(w, "<Error><Code>%s</Code></Error>", code)
	}
	key, ok := strings.CutPrefix(r.URL.Path, "/bucket/")
	if !ok {
		f.list(w, r.URL.Query())
		return
	}
	object, there := f.objects[key]
	switch r.Method {
	case http.MethodPut:
		if f.objects == nil {
			f.objects = map[string]fakeObject{}
		}
		data, _ := io.ReadAll(r.Body)
		switch {
		case f.refuses:
			refuse(http.StatusNotImplemented, "NotImplemented")
		case f.full:
			refuse(http.StatusInsufficientStorage, "InsufficientStorage")
		case there && !f.replaces:
			refuse(http.StatusPreconditionFailed, "PreconditionFailed")
		case f.forgets:
			f.objects[key] = fakeObject{data: string(data)}
		default:
			f.objects[key] = fakeObject{string(data), r.Header.Get("X-Amz-Meta-" + nonceKey)}
		}
	case http.MethodDelete:
		if f.keeps {
			refuse(http.StatusForbidden, "AccessDenied")
			return
		}
		delete(f.objects, key)
		w.WriteHeader(http.StatusNoContent)
	default:
		if !there {
			refuse(http.StatusNotFound, "NoSuchKey")
			return
		}
		w.Header().Set("X-Amz-Meta-"+nonceKey, object.nonce)
		if f.quiet {
			w.(http.Flusher).Flush()
		} else {
			w.Header().Set("Content-Length", strconv.Itoa(len(object.data)))
		}
		io.WriteString(w, object.data)
	}
}

func (f *fake) list(w http.ResponseWriter, query url.Values) {
	type content struct {
		Key          string
		Size         int
		LastModified string `xml:",omitempty"`
	}
	var answer struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		EncodingType          string   `xml:",omitempty"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		Contents              []content
	}
	for _, key := range slices.Sorted(maps.Keys(f.objects)) {
		if !f.strayLists && !strings.HasPrefix(key, query.Get("prefix")) || key <= query.Get("continuation-token") {
			continue
		}
		if f.pageSize > 0 && len(answer.Contents) == f.pageSize {
			answer.IsTruncated = true
			break
		}
		answer.NextContinuationToken = key
		c := content{Key: key, Size: len(f.objects[key].data)}
		if !f.timeless {
			c.LastModified = time.Now().UTC().Format(time.RFC3339)
		}
		if !f.plainList && query.Get("encoding-type") == "url" {
			answer.EncodingType, c.Key = "url", url.QueryEscape(key)
		}
		answer.Contents = append(answer.Contents, c)
	}
	if f.endless {
		answer.IsTruncated, answer.NextContinuationToken = true, "again"
	}
	xml.NewEncoder(w).Encode(answer)
}

// Properties: a server on which Create could not keep its promises is refused when a root is accepted, with what is wrong with it; one that can is not,
// and nothing is left there.
func TestServersThatAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		server *fake
		want   string // in the error; empty: none
		left   int
	}{
		"good":                    {server: &fake{}},
		"without lengths":         {server: &fake{quiet: true}},
		"ignores If-None-Match":   {server: &fake{replaces: true}, want: "ignores If-None-Match"},
		"refuses If-None-Match":   {server: &fake{refuses: true}, want: "use a server that knows conditional writes"},
		"loses metadata":          {server: &fake{forgets: true}, want: "does not keep the metadata"},
		"does not delete":         {server: &fake{keeps: true}, want: "cannot be deleted", left: 1},
		"has no room":             {server: &fake{full: true}, want: "HTTP status 507"},
		"replaces, never deletes": {server: &fake{replaces: true, keeps: true}, want: "ignores If-None-Match", left: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := c.server.start(t)
			got, err := s.Resolve(t.Context(), root.URI, s.defaults)
			switch {
			case c.want == "" && err != nil:
				t.Error(err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), root.URI)):
				t.Errorf("%v; want an error that names the root and says: %s", err, c.want)
			case c.want == "" && (got.URI != root.URI || got.S3 != s.defaults):
				t.Errorf("resolved to %v", got)
			}
			if len(c.server.objects) != c.left {
				t.Errorf("left there: %v", c.server.objects)
			}
			for key := range c.server.objects {
				if !blob.IsTemporary(key) {
					t.Errorf("%s is not temporary", key)
				}
			}
		})
	}
}

func TestFullServer(t *testing.T) {
	s, root := (&fake{full: true}).start(t)
	if err := s.Create(t.Context(), blob.Scope{root}, root.URI+"/f", nil); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Create: %v; want ErrFull", err)
	}
	if err := s.Mark(t.Context(), root, "w"); !errors.Is(err, blob.ErrFull) {
		t.Errorf("Mark: %v; want ErrFull", err)
	}
}

// Property: Read's limit holds whatever the server says about the size.
func TestReadIsBoundedWithoutLength(t *testing.T) {
	s, root := (&fake{quiet: true}).start(t)
	scope := blob.Scope{root}
	must(t, s.Create(t.Context(), scope, root.URI+"/f", make([]byte, 1000)))
	if _, err := s.Read(t.Context(), scope, root.URI+"/f", 999); !errors.Is(err, blob.ErrTooLarge) {
		t.Errorf("Read: %v; want ErrTooLarge", err)
	}
	if data, err := s.Read(t.Context(), scope, root.URI+"/f", 1000); err != nil || len(data) != 1000 {
		t.Errorf("Read: %d bytes, %v", len(data), err)
	}
}

// Properties: every page is read, keys are what they are however the server writes them, and what is no file is left out.
func TestList(t *testing.T) {
	objects := map[string]fakeObject{
		"lake/t/a b+c%20d": {}, "lake/t/é": {}, "lake/t/x/y": {}, "lake/t/x/.landfast-1.tmp": {}, "lake/t//z": {},
		"lake/t/dir/": {}, "lake/t/": {}, "lake/" + blob.MarkPrefix + "w": {}, "lake/t/" + blob.MarkPrefix + "w": {},
		"lake/tt/f": {}, "lake2/t/f": {}, "lake/u": {},
	}
	inT := []string{"//z", "/a b+c%20d", "/x/.landfast-1.tmp temporary", "/x/y", "/é"}
	for name, server := range map[string]*fake{
		"one page": {objects: objects}, "pages of 1": {objects: objects, pageSize: 1}, "pages of 3": {objects: objects, pageSize: 3},
		"not encoded": {objects: objects, plainList: true, pageSize: 2},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := server.start(t)
			var found []string
			add := func(e blob.Entry) error {
				if e.Temporary {
					e.Location += " temporary"
				}
				found = append(found, strings.TrimPrefix(e.Location, root.URI+"/t"))
				return nil
			}
			must(t, s.List(t.Context(), blob.Scope{root}, root.URI+"/t", add))
			slices.Sort(found)
			if diff := cmp.Diff(inT, found); diff != "" {
				t.Errorf("below t (-want +got):\n%s", diff)
			}
			found = nil
			must(t, s.List(t.Context(), blob.Scope{root}, root.URI, add))
			if len(found) != len(inT)+2 {
				t.Errorf("below the root: %q", found)
			}
			found = nil
			bucket := blob.Root{URI: "s3://bucket"}
			must(t, s.List(t.Context(), blob.Scope{bucket}, bucket.URI, add))
			if len(found) != len(inT)+3 {
				t.Errorf("in the bucket: %q", found)
			}
		})
	}
}

// Property: a list that cannot be relied upon is an error, and not an end.
func TestBrokenLists(t *testing.T) {
	objects := map[string]fakeObject{"lake/a": {}, "else/b": {}}
	for name, server := range map[string]*fake{
		"endless": {objects: objects, endless: true}, "timeless": {objects: objects, timeless: true}, "stray": {objects: objects, strayLists: true},
	} {
		t.Run(name, func(t *testing.T) {
			s, root := server.start(t)
			if err := s.List(t.Context(), blob.Scope{root}, root.URI, func(blob.Entry) error { return nil }); err == nil || !strings.Contains(err.Error(), "list is broken") {
				t.Errorf("List: %v", err)
			}
		})
	}
}
