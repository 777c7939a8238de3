package schema

import (
	"bytes"
	"testing"
)

// Whatever is accepted can be written and is accepted again as the same; nothing
// panics.
func FuzzParse(f *testing.F) {
	f.Add([]byte(nested))
	f.Add([]byte(columns(column(1, "a", `"geography(x), KARNEY)"`), `{"id":2,"name":"d","required":false,"type":"decimal(9,2)","initial-default":"1E-2","y":[]}`)))
	f.Add([]byte(columns(`{"id":2,"name":"d","required":false,"type":"timestamptz_ns","initial-default":"2017-11-16T22:31Z"}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		checkWriting(t, s)
		checkFresh(t, s, s.AssignFreshIDs())
		for version := range 4 {
			_ = s.CheckFormat(version)
		}
		_, _ = s.FieldByName(string(data[:len(data)/2]))
	})
}

func FuzzParseSpec(f *testing.F) {
	f.Add([]byte(spec(part(1000, 1, "a", "Bucket[04]"), part(1001, 2, "b", "day"))))
	f.Add([]byte(`{"x":[],"spec-id":1,"fields":[{"name":"a","transform":"z","source-ids":[1,2],"y":null}]}`))
	s := sourceSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		sp, err := ParseSpec(data)
		if err != nil {
			return
		}
		again, err := ParseSpec(sp.JSON())
		if err != nil || !again.SameAs(sp) || !bytes.Equal(again.JSON(), sp.JSON()) {
			t.Fatalf("%s does not survive being written: %v", sp.JSON(), err)
		}
		if bound, err := sp.Bind(s, 1010, 3, []*Spec{sp}); err == nil {
			if !bound.SameAs(sp) || bound.CheckCompatible(s) != nil || bound.CheckNames(s) != nil {
				t.Fatalf("%s was bound to %s", sp.JSON(), bound.JSON())
			}
		}
		_, _ = sp.Fresh(s, s.AssignFreshIDs())
	})
}

func FuzzParseSortOrder(f *testing.F) {
	f.Add([]byte(order(sortBy(1, "Bucket[04]"), sortBy(2, "day"))))
	f.Add([]byte(`{"fields":[{"transform":"z","source-ids":[1,2],"direction":"DESC","null-order":"nulls-last"}]}`))
	s := sourceSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		o, err := ParseSortOrder(data)
		if err != nil {
			return
		}
		again, err := ParseSortOrder(o.JSON())
		if err != nil || !again.SameAs(o) || !bytes.Equal(again.JSON(), o.JSON()) {
			t.Fatalf("%s does not survive being written: %v", o.JSON(), err)
		}
		_ = o.CheckCompatible(s)
		_, _ = o.Fresh(s, s.AssignFreshIDs())
	})
}
