package schema

import (
	"fmt"
	"testing"
)

func withDefault(t testing.TB, typ, value string) (*Schema, error) {
	t.Helper()
	return Parse([]byte(columns(fmt.Sprintf(`{"id":1,"name":"a","required":false,"type":%s,"initial-default":%s,"write-default":%s}`, typ, value, value))))
}

const point = `{"type":"struct","fields":[{"id":2,"name":"x","required":false,"type":"int","initial-default":1}]}`

func TestDefaults(t *testing.T) {
	tests := []struct{ typ, value, want string }{
		{`"boolean"`, `true`, `true`},
		{`"int"`, `-2147483648`, `-2147483648`},
		{`"long"`, `9007199254740993`, `9007199254740993`},
		{`"long"`, `9223372036854775807`, `9223372036854775807`},
		{`"long"`, `-9223372036854775808`, `-9223372036854775808`},
		{`"float"`, `1.5`, `1.5`},
		{`"float"`, `1`, `1.0`},
		{`"double"`, `-12`, `-12.0`},
		{`"double"`, `1E10`, `1E10`},
		{`"double"`, `0.1000000000000000055511151231257827`, `0.1000000000000000055511151231257827`},
		{`"decimal(9,2)"`, `"14.20"`, `"14.20"`},
		{`"decimal(9,2)"`, `"-.05"`, `"-.05"`},
		{`"decimal(38,0)"`, `"99999999999999999999999999999999999999"`, `"99999999999999999999999999999999999999"`},
		{`"decimal(9,1)"`, `"1.23E+1"`, `"1.23E+1"`},
		{`"date"`, `"2017-11-16"`, `"2017-11-16"`},
		{`"time"`, `"22:31:08.123456"`, `"22:31:08.123456"`},
		{`"time"`, `"22:31"`, `"22:31"`},
		{`"timestamp"`, `"2017-11-16T22:31:08.123456"`, `"2017-11-16T22:31:08.123456"`},
		{`"timestamp"`, `"9999-12-31T23:59:59"`, `"9999-12-31T23:59:59"`},
		{`"timestamptz"`, `"2017-11-16T22:31:08.123456+00:00"`, `"2017-11-16T22:31:08.123456+00:00"`},
		{`"timestamptz"`, `"2017-11-16T22:31:08Z"`, `"2017-11-16T22:31:08+00:00"`},
		{`"timestamp_ns"`, `"2017-11-16T22:31:08.123456789"`, `"2017-11-16T22:31:08.123456789"`},
		{`"timestamptz_ns"`, `"2017-11-16T22:31:08.123456789Z"`, `"2017-11-16T22:31:08.123456789+00:00"`},
		{`"string"`, `"a\u0062\n"`, `"a\u0062\n"`},
		{`"string"`, `""`, `""`},
		{`"uuid"`, `"F79c3e09-677c-4bbd-a479-3f349cb785e7"`, `"F79c3e09-677c-4bbd-a479-3f349cb785e7"`},
		{`"fixed[4]"`, `"000102fF"`, `"000102fF"`},
		{`"binary"`, `""`, `""`},
		{`"binary"`, `"0A"`, `"0A"`},
		{point, `{}`, `{}`},
		{point, `{ }`, `{}`},
	}
	for _, test := range tests {
		t.Run(test.typ+" "+test.value, func(t *testing.T) {
			s, err := withDefault(t, test.typ, test.value)
			if err != nil {
				t.Fatal(err)
			}
			f, _ := s.Field(1)
			if f.InitialDefault.IsNull() || string(f.InitialDefault.json) != test.want || string(f.WriteDefault.json) != test.want {
				t.Errorf("defaults are %s and %s, want %s", f.InitialDefault.json, f.WriteDefault.json, test.want)
			}
			if again := mustParse(t, string(s.JSON())); !again.SameAs(s) || !again.AssignFreshIDs().SameAs(s.AssignFreshIDs()) {
				t.Error("the default does not survive being written")
			}
		})
	}
}

func TestDefaultsRefused(t *testing.T) {
	tests := []struct{ typ, value, fragment string }{
		{`"boolean"`, `1`, "expected true or false"},
		{`"int"`, `2147483648`, "integer that fits"},
		{`"int"`, `1.0`, "integer that fits"},
		{`"int"`, `"1"`, "integer that fits"},
		{`"long"`, `9223372036854775808`, "integer that fits"},
		{`"long"`, `1e3`, "integer that fits"},
		{`"float"`, `1e39`, "out of range"},
		{`"float"`, `"1.0"`, "expected a number"},
		{`"double"`, `1e400`, "out of range"},
		{`"double"`, `true`, "expected a number"},
		{`"decimal(9,2)"`, `14.20`, "expected a string"},
		{`"decimal(9,2)"`, `"14.2"`, "the scale does not match"},
		{`"decimal(9,2)"`, `"14"`, "the scale does not match"},
		{`"decimal(3,2)"`, `"14.20"`, "the precision is exceeded"},
		{`"decimal(9,2)"`, `"."`, "expected a decimal number"},
		{`"decimal(9,2)"`, `"1e99999999999"`, "expected a decimal number"},
		{`"decimal(9,2)"`, `"x"`, "expected a decimal number"},
		{`"date"`, `17000`, "expected a string"},
		{`"date"`, `"2017-02-30"`, "expected a text like 2017-11-16"},
		{`"date"`, `"17-02-03"`, "expected a text like 2017-11-16"},
		{`"time"`, `"24:00:00"`, "expected a text like 22:31:08.123456"},
		{`"time"`, `"22:31:08,5"`, "expected a text like 22:31:08.123456"},
		{`"time"`, `"22:31:08.1234567"`, "expected a text like"},
		{`"timestamp"`, `"2017-11-16 22:31:08"`, "expected a text like 2017-11-16T22:31:08.123456"},
		{`"timestamp"`, `"2017-11-16T22:31:08Z"`, "expected a text like"},
		{`"timestamp"`, `"2017-11-16T22:31:08.1234567"`, "expected a text like"},
		{`"timestamptz"`, `"2017-11-16T22:31:08"`, "expected a text like"},
		{`"timestamptz"`, `"2017-11-16T22:31:08+01:00"`, "expected a text like"},
		{`"timestamp_ns"`, `"2300-01-01T00:00:00"`, "does not fit 64 bits"},
		{`"timestamptz_ns"`, `"1600-01-01T00:00:00Z"`, "does not fit 64 bits"},
		{`"string"`, `1`, "expected a string"},
		{`"uuid"`, `"f79c3e09677c4bbda4793f349cb785e7"`, "expected a UUID"},
		{`"fixed[4]"`, `"0001"`, "the length is 2"},
		{`"fixed[1]"`, `"0g"`, "hexadecimal"},
		{`"binary"`, `"000"`, "hexadecimal"},
		{`"variant"`, `1`, "must be null"},
		{`"unknown"`, `1`, "must be null"},
		{`"geometry"`, `"POINT (30 10)"`, "must be null"},
		{`"geography"`, `"POINT (30 10)"`, "must be null"},
		{point, `{"2":1}`, "must be null, or {} for a struct"},
		{point, `[]`, "must be null, or {} for a struct"},
		{`{"type":"list","element-id":2,"element":"int","element-required":true}`, `[]`, "must be null, or {}"},
		{`{"type":"map","key-id":2,"key":"int","value-id":3,"value":"int","value-required":true}`, `{}`, "must be null, or {}"},
	}
	for _, test := range tests {
		t.Run(test.typ+" "+test.value, func(t *testing.T) {
			_, err := withDefault(t, test.typ, test.value)
			wantRefusal(t, err, test.fragment)
			wantRefusal(t, err, `schema: field "a": initial-default: `)
		})
	}
}

// Defaults are compared as values, not as texts, and exactly.
func TestSameDefaults(t *testing.T) {
	tests := []struct {
		typ, a, b string
		same      bool
	}{
		{`"long"`, `9007199254740993`, `9007199254740992`, false},
		{`"long"`, `-0`, `0`, true},
		{`"double"`, `1`, `1.0`, true},
		{`"double"`, `10.0`, `1e1`, true},
		{`"double"`, `0.0`, `-0.0`, false},
		{`"float"`, `0.1`, `0.10000000149011612`, true},
		{`"double"`, `0.1`, `0.10000000149011612`, false},
		{`"decimal(9,2)"`, `"014.20"`, `"1420E-2"`, true},
		{`"decimal(9,2)"`, `"0.00"`, `"-0.00"`, true},
		{`"decimal(9,2)"`, `"1.00"`, `"-1.00"`, false},
		{`"string"`, `"\u0061"`, `"a"`, true},
		{`"string"`, `"a"`, `"A"`, false},
		{`"string"`, `""`, `null`, false},
		{`"uuid"`, `"F79C3E09-677c-4bbd-a479-3f349cb785e7"`, `"f79c3e09-677c-4bbd-a479-3f349cb785e7"`, true},
		{`"binary"`, `"0A"`, `"0a"`, true},
		{`"binary"`, `""`, `null`, false},
		{`"time"`, `"22:31"`, `"22:31:00.000"`, true},
		{`"timestamptz"`, `"2017-11-16T22:31:08.100Z"`, `"2017-11-16T22:31:08.1+00:00"`, true},
		{`"timestamp_ns"`, `"2017-11-16T22:31:08.000000001"`, `"2017-11-16T22:31:08"`, false},
		{point, `{}`, `null`, false},
	}
	for _, test := range tests {
		t.Run(test.typ+" "+test.a+" "+test.b, func(t *testing.T) {
			a, err := withDefault(t, test.typ, test.a)
			if err != nil {
				t.Fatal(err)
			}
			b, err := withDefault(t, test.typ, test.b)
			if err != nil {
				t.Fatal(err)
			}
			if got := a.SameAs(b); got != test.same {
				t.Errorf("SameAs = %v, want %v", got, test.same)
			}
		})
	}
}
