package rest

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseTags(t *testing.T) {
	for _, tc := range []struct {
		headers []string
		want    []string
	}{
		{nil, nil},
		{[]string{""}, nil},
		{[]string{`"abc"`}, []string{"abc"}},
		{[]string{`W/"abc"`}, []string{"abc"}},
		{[]string{"abc"}, []string{"abc"}},
		{[]string{" abc "}, []string{"abc"}},
		{[]string{"*"}, []string{"*"}},
		{[]string{`"*"`}, nil},
		{[]string{`"a", W/"b",c , "d"`}, []string{"a", "b", "c", "d"}},
		{[]string{`"a"`, `"b"`}, []string{"a", "b"}},
		{[]string{`"a,b"`}, []string{"a,b"}},
		{[]string{`,, ,"a",,`}, []string{"a"}},
		{[]string{`"a""b"`}, []string{"a", "b"}},
		{[]string{`""`}, nil},
		{[]string{`"unfinished`}, nil},
		{[]string{`W/unquoted`}, []string{"W/unquoted"}},
	} {
		if diff := cmp.Diff(tc.want, parseTags(tc.headers)); diff != "" {
			t.Errorf("%q: -want +got\n%s", tc.headers, diff)
		}
	}
}

func FuzzParseTags(f *testing.F) {
	for _, s := range []string{"", "*", `"a"`, `W/"a", b`, `"`, ",", `W/`, `"a"b"c`} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, header string) {
		for _, tag := range parseTags([]string{header}) {
			if tag == "" {
				t.Errorf("an empty tag in %q", header)
			}
		}
		if tags := parseTags([]string{quoteTag("0123456789abcdef"), header}); tags[0] != "0123456789abcdef" {
			t.Errorf("%q", tags)
		}
	})
}
