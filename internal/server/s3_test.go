package server

import (
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/landfast/landfast/internal/blob/s3/s3test"
)

const s3Table = `{"name":"t","schema":{"type":"struct","schema-id":0,"fields":[{"id":1,"name":"id","required":true,"type":"long"}]}}`

// Main may lie in a bucket. Loads tell clients how to reach it, without a secret; a purge
// deletes what the table had there; a restart finds it all.
func TestMainOnS3(t *testing.T) {
	gateway := s3test.Start(t)
	bucket := gateway.NewBucket(t)
	c := testConfig(t.TempDir())
	c.S3 = gateway.Options
	c.Warehouse.Main.Location = "s3://" + bucket + "/lake"
	i := run(t, c)
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	i.want(t, "POST", "/v1/namespaces/ns/tables", s3Table, 200, `"metadata-location":"s3://`+bucket+`/lake/ns/t-`)
	i.want(t, "POST", "/v1/namespaces/ns/tables/t", `{"requirements":[],"updates":[{"action":"set-properties","updates":{"k":"v"}}]}`, 200, `"k":"v"`)
	_, body := i.do(t, "GET", "/v1/namespaces/ns/tables/t", "")
	var load struct {
		Config map[string]string `json:"config"`
	}
	if err := json.Unmarshal([]byte(body), &load); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"s3.endpoint": gateway.Options.Endpoint, "s3.region": "us-east-1", "client.region": "us-east-1", "s3.path-style-access": "true",
	}
	if diff := cmp.Diff(want, load.Config); diff != "" {
		t.Errorf("config: -want +got\n%s", diff)
	}
	if strings.Contains(body, gateway.Options.SecretAccessKey) || strings.Contains(body, gateway.Options.AccessKeyID) {
		t.Error("a load shows credentials")
	}
	if n := len(gateway.Keys(t, bucket)); n != 3 { // the marker and two metadata files
		t.Errorf("%d objects: %q", n, gateway.Keys(t, bucket))
	}
	if err := i.end(); err != nil {
		t.Fatal(err)
	}

	i = run(t, c)
	i.want(t, "GET", "/v1/namespaces/ns/tables/t", "", 200, `"k":"v"`)
	i.want(t, "DELETE", "/v1/namespaces/ns/tables/t?purgeRequested=true", "", 204, "")
	if keys := gateway.Keys(t, bucket); len(keys) != 1 {
		t.Errorf("after the purge: %q", keys)
	}
}

// The tag of a table changes when the way to its files does, and not otherwise.
func TestETagFoldsConfig(t *testing.T) {
	gateway := s3test.Start(t)
	c := testConfig(t.TempDir())
	c.S3 = gateway.Options
	c.Warehouse.Main.Location = "s3://" + gateway.NewBucket(t) + "/lake"
	i := run(t, c)
	i.want(t, "POST", "/v1/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	created, _ := i.do(t, "POST", "/v1/namespaces/ns/tables", s3Table)
	tag := created.Header.Get("ETag")
	load := func(want int) {
		t.Helper()
		r, _ := i.do(t, "GET", "/v1/namespaces/ns/tables/t", "", "If-None-Match", tag)
		if r.StatusCode != want {
			t.Errorf("%s, want %d", r.Status, want)
		}
	}
	load(http.StatusNotModified)
	if err := i.end(); err != nil {
		t.Fatal(err)
	}
	c.S3.Endpoint = strings.Replace(c.S3.Endpoint, "127.0.0.1", "localhost", 1)
	i = run(t, c)
	load(http.StatusOK)
}

// A warehouse may have S3 options of its own. Its secret is never shown again, and is
// not in the log.
func TestWarehouseOnS3(t *testing.T) {
	gateway := s3test.Start(t)
	bucket := gateway.NewBucket(t)
	c := testConfig(t.TempDir())
	i := run(t, c)
	secret := gateway.Options.SecretAccessKey
	options := `"endpoint":"` + gateway.Options.Endpoint + `","access-key-id":"` + gateway.Options.AccessKeyID + `"`
	i.want(t, "POST", "/management/v1/warehouses", `{"name":"lake","location":"s3://`+bucket+`/lake","s3":{`+options+`}}`, 400, "secret-access-key")
	i.want(t, "POST", "/management/v1/warehouses", `{"name":"lake","location":"s3://`+bucket+`/lake","s3":{`+options+`,"secret":"x"}}`, 400, "secret-access-key")
	i.want(t, "POST", "/management/v1/warehouses", `{"name":"lake","location":"s3://no-such-bucket-here/lake","s3":{`+options+`,"secret-access-key":"`+secret+`"}}`, 422, "no-such-bucket-here")
	i.want(t, "POST", "/management/v1/warehouses", `{"name":"lake","location":"s3://`+bucket+`/lake","s3":{`+options+`,"secret-access-key":"wrong"}}`, 422, "lake")
	i.want(t, "POST", "/management/v1/warehouses", `{"name":"lake","location":"s3://`+bucket+`/lake","s3":{`+options+`,"secret-access-key":"`+secret+`"}}`, 200, "lake")
	i.want(t, "POST", "/v1/lake/namespaces", `{"namespace":["ns"]}`, 200, "ns")
	i.want(t, "POST", "/v1/lake/namespaces/ns/tables", s3Table, 200, `"s3.endpoint":"`+gateway.Options.Endpoint+`"`)
	i.want(t, "GET", "/v1/lake/namespaces/ns/tables/t", "", 200, `"s3.endpoint":"`+gateway.Options.Endpoint+`"`)
	for _, path := range []string{"/management/v1/warehouses", "/management/v1/warehouses/lake", "/v1/config?warehouse=lake", "/v1/lake/namespaces/ns/tables/t"} {
		if _, body := i.do(t, "GET", path, ""); strings.Contains(body, secret) {
			t.Errorf("%s shows the secret", path)
		}
	}
	if strings.Contains(i.log.String(), secret) {
		t.Error("the log shows the secret")
	}
	// Keys can be replaced, by ones that work.
	i.want(t, "POST", "/management/v1/warehouses/lake/s3", `{`+options+`,"secret-access-key":"wrong"}`, 422, "cannot be reached so")
	i.want(t, "POST", "/management/v1/warehouses/lake/s3", `{"region":"EU"}`, 400, "region")
	i.want(t, "POST", "/management/v1/warehouses/lake/s3", `{`+options+`,"region":"us-east-1","secret-access-key":"`+secret+`"}`, 200, `"region":"us-east-1"`)
	i.want(t, "GET", "/v1/lake/namespaces/ns/tables/t", "", 200, `"s3.region":"us-east-1"`)
	i.want(t, "POST", "/management/v1/warehouses/main/s3", `{`+options+`,"secret-access-key":"`+secret+`"}`, 400, "Warehouse main has no location that begins with s3://")
	if info, err := os.Stat(c.Data + "/catalog.db"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file that holds the secret: %v %v", info.Mode(), err)
	}
}
