package rawjson_test

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/rawjson"
)

type request struct {
	Name   string            `json:"name"`
	ID     int64             `json:"id"`
	Level  int32             `json:"level"`
	Flag   bool              `json:"flag"`
	Tags   []string          `json:"tags"`
	Props  map[string]string `json:"props"`
	Raw    rawjson.Raw       `json:"raw"`
	Nested *request          `json:"nested"`
	Part   *part             `json:"part"`
}

// part decodes itself, as the updates of a commit do.
type part struct{ Kind string }

var errPart = errors.New("unknown kind")

func (p *part) UnmarshalJSON(data []byte) error {
	var v struct {
		Kind string `json:"kind"`
		Size int8   `json:"size"`
	}
	if err := rawjson.Unmarshal(data, &v); err != nil {
		return err
	}
	if v.Kind != "known" {
		return errPart
	}
	p.Kind = v.Kind
	return nil
}

func TestUnmarshal(t *testing.T) {
	var got request
	const text = ` {"name":"\u0061b","id":9223372036854775807,"level":-2147483648,"flag":true,"tags":["x"],
		"props":{"k":"v"},"raw":{ "a" : 1.50 },"unknown":[1,2],"nested":{"id":-9223372036854775808}} `
	if err := rawjson.Unmarshal([]byte(text), &got); err != nil {
		t.Fatal(err)
	}
	want := request{
		Name: "ab", ID: math.MaxInt64, Level: math.MinInt32, Flag: true, Tags: []string{"x"},
		Props: map[string]string{"k": "v"}, Raw: rawjson.Raw(`{ "a" : 1.50 }`),
		Nested: &request{ID: math.MinInt64},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("decoded value (-want +got):\n%s", diff)
	}
}

func TestUnmarshalRefuses(t *testing.T) {
	tests := []struct {
		name, text, want string
	}{
		{"nothing", ``, `invalid JSON at byte 0: the text ends before the value does`},
		{"truncated", `{"nested":{"id":1`, `the text ends before the value does`},
		{"trailing text", `{"id":1} {}`, `after top-level value`},
		{"duplicate name", `{"nested":{"id":1,"id":2}}`, `invalid JSON at /nested/id (byte 18): member "id" appears twice in one object`},
		{"duplicate name, escaped", `{"id":1,"\u0069d":2}`, `member "id" appears twice`},
		{"duplicate unknown name", `{"x":{"y":1,"y":1}}`, `at /x/y (byte 12): member "y" appears twice`},
		{"not UTF-8", "{\"name\":\"a\xffb\"}", `invalid UTF-8`},
		{"half a surrogate pair", `{"name":"\ud800"}`, `invalid surrogate pair`},
		{"control character", "{\"name\":\"a\nb\"}", `invalid character`},
		{"fraction for an integer", `{"id":1.0}`, `at /id: expected an integer of 64 bits, found the number 1.0`},
		{"exponent for an integer", `{"id":1e3}`, `found the number 1e3`},
		{"beyond 64 bits", `{"id":9223372036854775808}`, `9223372036854775808 does not fit an integer of 64 bits`},
		{"beyond 32 bits", `{"level":2147483648}`, `2147483648 does not fit an integer of 32 bits`},
		{"string for an integer", `{"id":"1"}`, `at /id: expected an integer of 64 bits, found a string`},
		{"integer for a string", `{"name":1}`, `expected a string, found a number`},
		{"object for an array", `{"tags":{}}`, `expected an array, found an object`},
		{"array for an object", `[]`, `expected an object, found an array`},
		{"boolean for a string", `{"tags":["a",true]}`, `at /tags/1: expected a string, found a boolean`},
		{"syntax within a method's part", `{"part":{"kind":"known","kind":"known"}}`, `invalid JSON at /part/kind (byte 24): member "kind" appears twice`},
		{"not JSON", `{'id':1}`, `invalid character '\''`},
		{"method's own error", `{"part":{"kind":"odd"}}`, `/part: unknown kind`},
		{"method's place", `{"part":{"kind":"known","size":300}}`, `at /part/size: 300 does not fit an integer of 8 bits`},
		{"deep", `{"raw":` + strings.Repeat("[", 20_000), `/0/0/0/0... (byte 10006): exceeded max depth`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := rawjson.Unmarshal([]byte(tt.text), new(request))
			var refused *rawjson.Error
			if !errors.As(err, &refused) {
				t.Fatalf("got %v, want an *Error", err)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %q\nwant %q", err, tt.want)
			}
		})
	}
}

// TestMessagesAreShort: names and numbers are as long as the sender likes, messages
// are not; and a value of the wrong type is not called invalid JSON.
func TestMessagesAreShort(t *testing.T) {
	long := strings.Repeat("9", 1<<20)
	for _, text := range []string{
		`{"` + long + `":1,"` + long + `":2}`,
		`{"id":` + long + `}`,
		`{"id":1.` + long + `}`,
		`{"tags":` + long + `}`,
		`{"nested":{"raw":{"` + long + `":!}}}`,
	} {
		err := rawjson.Unmarshal([]byte(text), new(request))
		if err == nil || len(err.Error()) > 1000 {
			t.Errorf("%.30s: message of %d bytes: %.200v", text, len(err.Error()), err)
		}
		syntax := strings.HasPrefix(err.Error(), "invalid JSON")
		if err := err.(*rawjson.Error); err.Syntax != syntax || syntax != (rawjson.Validate([]byte(text)) != nil) {
			t.Errorf("%.30s: Syntax is %v in %.200v", text, err.Syntax, err)
		}
	}
}

func TestUnmarshalKeepsCause(t *testing.T) {
	err := rawjson.Unmarshal([]byte(`{"part":{"kind":"odd"}}`), new(request))
	if !errors.Is(err, errPart) {
		t.Errorf("%v does not wrap the error of the UnmarshalJSON method", err)
	}
}

func TestNamesAreCaseSensitive(t *testing.T) {
	var got request
	if err := rawjson.Unmarshal([]byte(`{"ID":1,"Name":"x"}`), &got); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(request{}, got); diff != "" {
		t.Errorf("members in other case were taken (-want +got):\n%s", diff)
	}
}

func TestNormalize(t *testing.T) {
	text := []byte(" { \"b\" : 1.50e+2,\n\"\\u0061\":[ -0, 9007199254740993 , \"\\u00e9\\/\\u003c<\\u2028\" ] } ")
	const want = "{\"b\":1.50e+2,\"a\":[-0,9007199254740993,\"é/<<\u2028\"]}"
	got, err := rawjson.Normalize(text)
	if err != nil || string(got) != want {
		t.Fatalf("got  %s, %v\nwant %s", got, err, want)
	}
	// The encoder that escapes most is undone by normalizing.
	embedded, err := json.Marshal([]json.RawMessage{text})
	if err != nil {
		t.Fatal(err)
	}
	again, err := rawjson.Normalize(embedded[1 : len(embedded)-1])
	if err != nil || string(again) != want {
		t.Errorf("behind encoding/json: %s, %v", again, err)
	}
	if _, err := rawjson.Normalize([]byte(`{"a":1,"a":2}`)); err == nil || !strings.Contains(err.Error(), "at /a (byte 7)") {
		t.Errorf("duplicate names give %v", err)
	}
}

func TestMarshal(t *testing.T) {
	got, err := rawjson.Marshal(map[string]any{"b": int64(math.MaxInt64), "a": "<&>\u2028", "c": rawjson.Raw(`{"z":1,"a":2}`)})
	const want = "{\"a\":\"<&>\u2028\",\"b\":9223372036854775807,\"c\":{\"z\":1,\"a\":2}}"
	if err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
