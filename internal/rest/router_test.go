package rest

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/catalog"
)

func TestFind(t *testing.T) {
	rt := newRouter(routes)
	for _, tc := range []struct {
		request string
		want    string
	}{
		{"GET /v1/config", "GET /v1/config"},
		{"GET /v1/namespaces", `GET /v1/{prefix}/namespaces main`},
		{"GET /v1/w/namespaces", `GET /v1/{prefix}/namespaces w`},
		{"GET /v1/namespaces/a", `GET /v1/{prefix}/namespaces/{namespace} main ["a"]`},
		{"GET /v1/namespaces/namespaces", `GET /v1/{prefix}/namespaces/{namespace} main ["namespaces"]`},
		{"GET /v1/w/namespaces/a%1Fb", `GET /v1/{prefix}/namespaces/{namespace} w ["a" "b"]`},
		{"GET /v1/w/namespaces/a%1fb%1F", `GET /v1/{prefix}/namespaces/{namespace} w ["a" "b" ""]`},
		{"GET /v1/w/namespaces/a\x1fb", `GET /v1/{prefix}/namespaces/{namespace} w ["a" "b"]`},
		{"GET /v1/w/namespaces/a%251Fb", `GET /v1/{prefix}/namespaces/{namespace} w ["a%1Fb"]`},
		{"GET /v1/w/namespaces/a+b%2Bc%20d%2Fe", `GET /v1/{prefix}/namespaces/{namespace} w ["a b+c d/e"]`},
		{"GET /v1/w/namespaces/a.b", `GET /v1/{prefix}/namespaces/{namespace} w ["a.b"]`},
		{"GET /v1/w/namespaces/..", `GET /v1/{prefix}/namespaces/{namespace} w [".."]`},
		{"DELETE /v1/w/namespaces/%C3%A9/tables/t%2F", `DELETE /v1/{prefix}/namespaces/{namespace}/tables/{table} w ["é"] "t/"`},
		{"POST /v1/tables/rename", `POST /v1/{prefix}/tables/rename main`},
		{"POST /v1/w/tables/rename", `POST /v1/{prefix}/tables/rename w`},
		{"GET /v1/w%2Fx/namespaces", `GET /v1/{prefix}/namespaces w/x`},
		{"GET /management/v1/warehouses/w", `GET /management/v1/warehouses/{warehouse} w`},

		{"GET ", "no such endpoint"},
		{"GET v1/config", "no such endpoint"},
		{"GET /v1/config/", "no such endpoint"},
		{"GET /V1/config", "no such endpoint"},
		{"GET /v1/w/config", "no such endpoint"},
		{"GET /v1/namespaces//tables", "no such endpoint"},
		{"GET /v1/w/namespaces%2Fa", "no such endpoint"},
		{"GET /v1/w/namespaces/a/tables/t/extra", "no such endpoint"},
		{"GET /v1/namespaces/a/tables/t/5/6/7", "no such endpoint"},
		{"GET /v1/w/namespaces/a/tables/t/7/8/9", "no such endpoint"},
		{"PUT /v1/namespaces/a/tables/t", "method not allowed; DELETE, GET, HEAD, POST"},
		{"get /v1/config", "method not allowed; GET"},
		{"GET /v1/w/namespaces/%2", "GET /v1/{prefix}/namespaces/{namespace} malformed request"},
	} {
		method, path, _ := strings.Cut(tc.request, " ")
		if got := shownMatch(rt.find(method, path)); got != tc.want {
			t.Errorf("%s\n got %s\nwant %s", tc.request, got, tc.want)
		}
	}
}

func shownMatch(r *compiledRoute, v pathValues, err error) string {
	var parts []string
	if r != nil {
		parts = append(parts, r.pattern())
	}
	var refusal *catalog.Error
	if errors.As(err, &refusal) {
		parts = append(parts, refusal.Kind.Error())
	}
	if allowed, ok := allowedMethods(err); ok {
		parts[len(parts)-1] += "; " + allowed
	}
	if v.warehouse != "" {
		parts = append(parts, v.warehouse)
	}
	if v.namespace != nil {
		parts = append(parts, fmt.Sprintf("%q", v.namespace))
	}
	if v.table != "" {
		parts = append(parts, fmt.Sprintf("%q", v.table))
	}
	return strings.Join(parts, " ")
}

// TestPrefixIsUnambiguous: every word that may follow a prefix is a name that no
// warehouse can have, so that a path with it in the prefix's place has no prefix.
func TestPrefixIsUnambiguous(t *testing.T) {
	rt := newRouter(routes)
	if len(rt.afterPrefix) == 0 {
		t.Fatal("no words")
	}
	for word := range rt.afterPrefix {
		if catalog.CheckWarehouseName(word) == nil {
			t.Errorf("a warehouse may be called %q", word)
		}
	}
}

// TestRoutesAreUnambiguous: no request has two routes.
func TestRoutesAreUnambiguous(t *testing.T) {
	for _, list := range newRouter(routes).routes {
		for i, a := range list {
			for _, b := range list[i+1:] {
				meet := a.method == b.method
				for j := range a.segments {
					x, y := a.segments[j], b.segments[j]
					meet = meet && (x == y || x[0] == '{' || y[0] == '{')
				}
				if meet {
					t.Errorf("%s and %s", a.name, b.name)
				}
			}
		}
	}
}

// TestRawPath: a slash within a name stays one, also when another character of
// the path was not escaped as it should have been.
func TestRawPath(t *testing.T) {
	for _, target := range []string{"/v1/a%2Fb", `/v1/a"%2Fb`, "/v1/a+b%2Bc", "/v1/é%2Fb", "/v1/a%1Fb", "/v1/a//b/../c", "/v1/{x}"} {
		r := httptest.NewRequest("GET", "/", nil)
		u, err := url.ParseRequestURI(target)
		if err != nil {
			t.Fatal(err)
		}
		r.URL = u
		got := rawPath(r.URL)
		// A path may come back with more escapes, but with the same segments.
		want := strings.Split(target, "/")
		segments := strings.Split(got, "/")
		for _, s := range [][]string{want, segments} {
			for i := range s {
				if s[i], err = url.QueryUnescape(s[i]); err != nil {
					t.Fatal(err)
				}
			}
		}
		if diff := cmp.Diff(want, segments); diff != "" {
			t.Errorf("%s: -want +got\n%s", target, diff)
		}
	}
}

func TestParentReadings(t *testing.T) {
	for _, tc := range []struct {
		value string // decoded once
		want  [][]string
	}{
		{"a", [][]string{{"a"}}},
		{"a\x1fb", [][]string{{"a", "b"}}},
		{"a+b", [][]string{{"a+b"}}},
		{"a%20b", [][]string{{"a%20b"}, {"a b"}}},
		{"a%1Fb%2520", [][]string{{"a%1Fb%2520"}, {"a", "b%20"}}},
		{"a\x1fb%2Bc+", [][]string{{"a", "b%2Bc+"}, {"a", "b+c+"}}},
		{"100%", [][]string{{"100%"}}},
		{"100%zz", [][]string{{"100%zz"}}},
	} {
		if diff := cmp.Diff(tc.want, parentReadings(tc.value)); diff != "" {
			t.Errorf("%q: -want +got\n%s", tc.value, diff)
		}
	}
}

// FuzzFind: what the clients escape comes back as it was, whatever the names, and
// nothing panics on what no client sends.
func FuzzFind(f *testing.F) {
	rt := newRouter(routes)
	f.Add("a", "b c+d", "t/%1F", "/v1/x/../namespaces//%zz")
	f.Add("namespaces", "", "\xff", "/v1/namespaces/%1f%1F/tables/+")
	f.Fuzz(func(t *testing.T, level1, level2, table, path string) {
		rt.find("GET", path)
		names := []string{level1, level2, table}
		if slices.ContainsFunc(names, func(s string) bool { return s == "" || strings.Contains(s, levelSeparator) }) {
			return
		}
		for client, escape := range map[string]func(string) string{
			"Java":       url.QueryEscape,
			"PyIceberg":  func(s string) string { return strings.ReplaceAll(url.QueryEscape(s), "+", "%20") },
			"iceberg-go": func(s string) string { return strings.ReplaceAll(url.PathEscape(s), "+", "%2B") },
		} {
			p := "/v1/w/namespaces/" + escape(level1) + "%1F" + escape(level2) + "/tables/" + escape(table)
			r, v, err := rt.find("GET", p)
			if err != nil || r.template != "/v1/{prefix}/namespaces/{namespace}/tables/{table}" {
				t.Fatalf("%s: %s: %v", client, p, err)
			}
			if diff := cmp.Diff(pathValues{"w", []string{level1, level2}, table, false}, v, cmp.AllowUnexported(pathValues{})); diff != "" {
				t.Errorf("%s: %s: -want +got\n%s", client, p, diff)
			}
		}
	})
}
