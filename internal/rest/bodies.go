package rest

import (
	"fmt"
	"strings"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
	"github.com/landfast/landfast/internal/rawjson"
)

// What requests hold. A member that must be there is a pointer or raw JSON, so
// that its absence shows; null is the same as absent.

type createNamespaceBody struct {
	Namespace  *names     `json:"namespace"`
	Properties properties `json:"properties"`
}

func (b *createNamespaceBody) missing() []string {
	return absent(b.Namespace == nil, "namespace")
}

type updatePropertiesBody struct {
	Removals names      `json:"removals"`
	Updates  properties `json:"updates"`
}

func (b *updatePropertiesBody) missing() []string { return nil }

type createTableBody struct {
	Name          *string     `json:"name"`
	Location      string      `json:"location"`
	Schema        rawjson.Raw `json:"schema"`
	PartitionSpec rawjson.Raw `json:"partition-spec"`
	WriteOrder    rawjson.Raw `json:"write-order"`
	StageCreate   bool        `json:"stage-create"`
	Properties    properties  `json:"properties"`
}

func (b *createTableBody) missing() []string {
	return append(absent(b.Name == nil, "name"), absent(isNull(b.Schema), "schema")...)
}

type commitTableBody struct {
	Identifier   *identBody  `json:"identifier"`
	Requirements rawjson.Raw `json:"requirements"`
	Updates      rawjson.Raw `json:"updates"`
}

func (b *commitTableBody) missing() []string {
	list := append(absent(isNull(b.Requirements), "requirements"), absent(isNull(b.Updates), "updates")...)
	return append(list, b.Identifier.missingIn("identifier", false)...)
}

// missingShownMax is how many missing members of a transaction are named.
const missingShownMax = 10

type commitTransactionBody struct {
	Changes []commitTableBody `json:"table-changes"`
}

func (b *commitTransactionBody) missing() []string {
	list := absent(b.Changes == nil, "table-changes")
	for i := range b.Changes {
		if len(list) > missingShownMax {
			return append(list, "and more")
		}
		change := &b.Changes[i]
		for _, name := range append(absent(change.Identifier == nil, "identifier"), change.missing()...) {
			list = append(list, fmt.Sprintf("table-changes[%d].%s", i, name))
		}
	}
	return list
}

type createViewBody struct {
	Name       *string     `json:"name"`
	Location   string      `json:"location"`
	Schema     rawjson.Raw `json:"schema"`
	Version    rawjson.Raw `json:"view-version"`
	Properties properties  `json:"properties"`
}

func (b *createViewBody) missing() []string {
	list := append(absent(b.Name == nil, "name"), absent(isNull(b.Schema), "schema")...)
	return append(list, absent(isNull(b.Version), "view-version")...)
}

type replaceViewBody struct {
	Identifier   *identBody  `json:"identifier"`
	Requirements rawjson.Raw `json:"requirements"`
	Updates      rawjson.Raw `json:"updates"`
}

func (b *replaceViewBody) missing() []string {
	return append(absent(isNull(b.Updates), "updates"), b.Identifier.missingIn("identifier", false)...)
}

type registerViewBody struct {
	Name             *string `json:"name"`
	MetadataLocation *string `json:"metadata-location"`
}

func (b *registerViewBody) missing() []string {
	return append(absent(b.Name == nil, "name"), absent(b.MetadataLocation == nil, "metadata-location")...)
}

type registerTableBody struct {
	Name             *string `json:"name"`
	MetadataLocation *string `json:"metadata-location"`
	Overwrite        bool    `json:"overwrite"`
}

func (b *registerTableBody) missing() []string {
	return append(absent(b.Name == nil, "name"), absent(b.MetadataLocation == nil, "metadata-location")...)
}

type renameTableBody struct {
	Source      *identBody `json:"source"`
	Destination *identBody `json:"destination"`
}

func (b *renameTableBody) missing() []string {
	return append(b.Source.missingIn("source", true), b.Destination.missingIn("destination", true)...)
}

type identBody struct {
	Namespace *names  `json:"namespace"`
	Name      *string `json:"name"`
}

// ident must be called only where nothing is missing.
func (b *identBody) ident() catalog.Ident {
	return catalog.Ident{Namespace: *b.Namespace, Name: *b.Name}
}

func (b *identBody) missingIn(member string, required bool) []string {
	if b == nil {
		return absent(required, member)
	}
	return append(absent(b.Namespace == nil, member+".namespace"), absent(b.Name == nil, member+".name")...)
}

type reportMetricsBody struct {
	ReportType *string `json:"report-type"`
}

func (b *reportMetricsBody) missing() []string {
	return absent(b.ReportType == nil, "report-type")
}

type createWarehouseBody struct {
	Name             *string    `json:"name"`
	Location         string     `json:"location"`
	AllowedLocations names      `json:"allowed-locations"`
	Properties       properties `json:"properties"`
	S3               s3Body     `json:"s3"`
}

func (b *createWarehouseBody) missing() []string {
	return absent(b.Name == nil, "name")
}

// createWarehouseMembers are all that the body may have.
var createWarehouseMembers = []string{"name", "location", "allowed-locations", "properties", "s3"}

// s3Body says how the bucket of a warehouse is reached. Its members are those of
// blob.S3Options; others are refused.
type s3Body blob.S3Options

var s3Members = []string{"endpoint", "region", "path-style", "access-key-id", "secret-access-key", "ca-file"}

// UnmarshalJSON implements json.Unmarshaler.
func (b *s3Body) UnmarshalJSON(data []byte) error {
	if isNull(data) {
		return nil
	}
	members, err := rawjson.Object(data)
	if err != nil {
		return err
	}
	for _, m := range members {
		if err := checkKnown(m.Name, s3Members); err != nil {
			return &rawjson.Error{Reason: err.Error()}
		}
	}
	return rawjson.Unmarshal(data, (*blob.S3Options)(b))
}

func (b s3Body) options() blob.S3Options { return blob.S3Options(b) }

// setS3Body is s3Body as a whole body.
type setS3Body s3Body

// UnmarshalJSON implements json.Unmarshaler.
func (b *setS3Body) UnmarshalJSON(data []byte) error { return (*s3Body)(b).UnmarshalJSON(data) }

func (b *setS3Body) missing() []string { return nil }

// absent is the list of one name, or of none.
func absent(is bool, name string) []string {
	if is {
		return []string{name}
	}
	return nil
}

func isNull(v rawjson.Raw) bool { return len(v) == 0 || string(v) == "null" }

// orNil drops a raw member that is null.
func orNil(v rawjson.Raw) []byte {
	if isNull(v) {
		return nil
	}
	return v
}

// properties are strings by name. Unlike a plain map they do not take null for an
// empty string.
type properties map[string]string

// UnmarshalJSON implements json.Unmarshaler.
func (p *properties) UnmarshalJSON(data []byte) error {
	var values map[string]*string
	if err := rawjson.Unmarshal(data, &values); err != nil {
		return err
	}
	*p = nil
	if values != nil {
		*p = make(properties, len(values))
	}
	for name, v := range values {
		if v == nil {
			return nullString("/" + escapePointer(name))
		}
		(*p)[name] = *v
	}
	return nil
}

// names are strings in order, none of them null.
type names []string

// UnmarshalJSON implements json.Unmarshaler.
func (n *names) UnmarshalJSON(data []byte) error {
	var values []*string
	if err := rawjson.Unmarshal(data, &values); err != nil {
		return err
	}
	*n = make(names, 0, len(values))
	for i, v := range values {
		if v == nil {
			return nullString("/" + string(rawjson.AppendInt(nil, int64(i))))
		}
		*n = append(*n, *v)
	}
	return nil
}

func nullString(pointer string) error {
	return &rawjson.Error{Pointer: pointer, Reason: "expected a string, found null"}
}

// escapePointer is a name as a JSON pointer (RFC 6901) holds it.
func escapePointer(name string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(name)
}
