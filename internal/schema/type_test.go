package schema

import "testing"

func TestTypeNames(t *testing.T) {
	tests := []struct{ in, want string }{
		{"boolean", "boolean"}, {"int", "int"}, {"long", "long"}, {"float", "float"}, {"double", "double"},
		{"date", "date"}, {"time", "time"}, {"timestamp", "timestamp"}, {"timestamptz", "timestamptz"},
		{"timestamp_ns", "timestamp_ns"}, {"timestamptz_ns", "timestamptz_ns"}, {"string", "string"},
		{"uuid", "uuid"}, {"binary", "binary"}, {"unknown", "unknown"}, {"variant", "variant"},
		{"TimestampTZ", "timestamptz"},
		{"decimal(9,2)", "decimal(9, 2)"}, {"Decimal( 38 , 0 )", "decimal(38, 0)"}, {"decimal(2,9)", "decimal(2, 9)"},
		{"fixed[16]", "fixed[16]"}, {"FIXED[ 0 ]", "fixed[0]"}, {"fixed[2147483647]", "fixed[2147483647]"},
		{"Geometry", "geometry"}, {"geometry (OGC:CRS84)", "geometry(OGC:CRS84)"}, {"GEOMETRY( srid:4326 )", "geometry(srid:4326)"},
		{"geometry ('EPSG:4326')", "geometry('EPSG:4326')"},
		{"GEOGRAPHY", "geography"}, {"geography( srid:4326 )", "geography(srid:4326)"}, {"geography(OGC:CRS84,spherical)", "geography(OGC:CRS84, spherical)"},
		{"Geography ( Srid:4326 , KARNEY )", "geography(Srid:4326, karney)"},
		{"geography(a,vincenty)", "geography(a, vincenty)"}, {"geography(a,thomas)", "geography(a, thomas)"},
		{"geography(a,andoyer)", "geography(a, andoyer)"},
	}
	for _, test := range tests {
		got, err := parseLeaf(test.in)
		if err != nil {
			t.Errorf("parseLeaf(%q): %v", test.in, err)
			continue
		}
		if got.String() != test.want {
			t.Errorf("parseLeaf(%q) = %q, want %q", test.in, got, test.want)
		}
		if again, err := parseLeaf(got.String()); err != nil || again != got {
			t.Errorf("parseLeaf(%q) = %v, %v, want what gave this name", got, again, err)
		}
	}
}

func TestTypeNamesRefused(t *testing.T) {
	tests := []struct{ in, fragment string }{
		{"", `unknown type ""`}, {"struct", `unknown type "struct"`}, {" int", `unknown type " int"`},
		{"decimal", "unknown type"}, {"decimal(9)", "unknown type"}, {"decimal(9,-2)", "unknown type"}, {"fixed", "unknown type"},
		{"fixed[-1]", "unknown type"}, {"timestamp(9)", "unknown type"},
		{"decimal(39,2)", "precision above 38"}, {"decimal(99999999999,2)", "precision above 38"},
		{"decimal(9,99999999999)", "the scale does not fit 32 bits"},
		{"fixed[2147483648]", "the length does not fit 32 bits"},
		{"geometry()", "reference system is empty"}, {"geography()", "reference system is empty"}, {"geography( , karney)", "reference system is empty"},
		{"geography(a, )", `edge interpolation algorithm ""`}, {"geography(a, flat)", `edge interpolation algorithm "flat"`},
		{"geography(a, b, c)", "unknown type"}, {"geometry(a", "unknown type"},
	}
	for _, test := range tests {
		t.Run(test.in, func(t *testing.T) {
			_, err := parseLeaf(test.in)
			if err == nil {
				t.Fatal("accepted")
			}
			wantRefusal(t, err, test.fragment)
		})
	}
}

// A coordinate reference system is compared without regard to case.
func TestSameTypeOfReferenceSystems(t *testing.T) {
	same := func(a, b string) bool {
		return mustParse(t, columns(column(1, "g", `"`+a+`"`))).SameAs(mustParse(t, columns(column(1, "g", `"`+b+`"`))))
	}
	for _, pair := range [][2]string{
		{"geometry", "geometry(ogc:crs84)"}, {"geography(srid:1)", "geography(SRID:1, Spherical)"},
		{"geography", "geography(OGC:CRS84)"}, {"geography", "geography(OGC:CRS84, spherical)"},
	} {
		if !same(pair[0], pair[1]) {
			t.Errorf("%s and %s differ", pair[0], pair[1])
		}
	}
	for _, pair := range [][2]string{
		{"geometry", "geography"}, {"geometry(a)", "geometry(b)"}, {"geography(a)", "geography(a, karney)"}, {"geography", "geography(a)"},
		{"decimal(9, 2)", "decimal(9, 3)"}, {"decimal(9, 2)", "decimal(8, 2)"}, {"fixed[1]", "fixed[2]"},
		{"timestamp", "timestamptz"},
	} {
		if same(pair[0], pair[1]) {
			t.Errorf("%s and %s are the same", pair[0], pair[1])
		}
	}
}
