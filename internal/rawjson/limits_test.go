package rawjson_test

import (
	"strings"
	"testing"

	"github.com/landfast/landfast/internal/rawjson"
)

func TestCheckLimits(t *testing.T) {
	nested := func(depth int) string {
		return strings.Repeat(`[`, depth-1) + `{"a":{}}` + strings.Repeat(`]`, depth-1)
	}
	tests := []struct {
		name, text, want string // want is empty where nothing is refused
	}{
		{"scalar", ` null `, ""},
		{"siblings do not nest", `[` + strings.Repeat(`{"a":[]},`, 1000) + `1]`, ""},
		{"brackets in strings", `["` + strings.Repeat(`[`, 1000) + `"]`, ""},
		{"deep", nested(499), ""},
		{"too deep", nested(500), "the depth of nesting at byte 504 exceeds 500"},
		{"long number", `[-` + strings.Repeat("9", 999) + `]`, ""},
		{"too long a number", `{"a": ` + strings.Repeat("9", 1001) + `}`, "the length of a number at byte 6 exceeds 1000"},
		{"long name", `{"` + strings.Repeat("n", 50_000) + `" : 1}`, ""},
		{"too long a name", `{"` + strings.Repeat("n", 50_001) + `" : 1}`, "the length of a name at byte 1 exceeds 50000"},
		{"longer than a name", `["` + strings.Repeat("n", 50_001) + `"]`, ""},
		{"long string", `["` + strings.Repeat("s", 20_000_000) + `"]`, ""},
		{"too long a string", `["` + strings.Repeat("s", 20_000_001) + `"]`, "the length of a string at byte 1 exceeds 20000000"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			err := rawjson.CheckLimits([]byte(tt.text))
			switch {
			case tt.want == "" && err != nil:
				t.Error(err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}
