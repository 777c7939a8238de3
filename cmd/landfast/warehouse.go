package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/landfast/landfast/internal/blob"
)

type warehouseCommand struct {
	Create warehouseCreateCommand `cmd:"" help:"Create a warehouse."`
	List   warehouseListCommand   `cmd:"" help:"List the warehouses."`
	Show   warehouseShowCommand   `cmd:"" help:"Show one warehouse."`
	Delete warehouseDeleteCommand `cmd:"" help:"Delete an empty warehouse; its files stay."`
	SetS3  warehouseSetS3Command  `cmd:"" name:"set-s3" help:"Change how the bucket of a warehouse is reached."`
	Sweep  warehouseSweepCommand  `cmd:"" help:"Delete metadata files that no table reaches."`
}

// Help is what --help adds.
func (warehouseCommand) Help() string {
	return `A warehouse is a place for namespaces and tables, with a directory for their files. A new
catalog has one, main. Clients choose a warehouse by its name, and get main without one.`
}

// warehouse is one as the server shows it.
type warehouse struct {
	ID               string            `json:"id"`
	Name             string            `json:"name"`
	Location         string            `json:"location"`
	AllowedLocations []string          `json:"allowed-locations"`
	Properties       map[string]string `json:"properties"`
	S3               *blob.S3Options   `json:"s3"` // without the secret
	CreatedAtMillis  int64             `json:"created-at-ms"`
}

func (w warehouse) created() string {
	return time.UnixMilli(w.CreatedAtMillis).UTC().Format(time.RFC3339)
}

// print writes everything about the warehouse for a person.
func (w warehouse) print(to io.Writer) error {
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "name\t%s\nid\t%s\nlocation\t%s\n", w.Name, w.ID, w.Location)
	for _, l := range w.AllowedLocations {
		fmt.Fprintf(t, "allowed location\t%s\n", l)
	}
	for _, k := range slices.Sorted(maps.Keys(w.Properties)) {
		fmt.Fprintf(t, "property\t%s=%s\n", k, w.Properties[k])
	}
	if o := w.S3; o != nil {
		for _, line := range [][2]string{{"endpoint", o.Endpoint}, {"region", o.Region}, {"access key", o.AccessKeyID}, {"CA file", o.CAFile}} {
			if line[1] != "" {
				fmt.Fprintf(t, "S3 %s\t%s\n", line[0], line[1])
			}
		}
		if o.PathStyle != nil {
			fmt.Fprintf(t, "S3 path style\t%t\n", *o.PathStyle)
		}
	}
	fmt.Fprintf(t, "created\t%s\n", w.created())
	return t.Flush()
}

type warehouseCreateCommand struct {
	remote
	Name     string   `arg:"" help:"Lower-case letters, digits, _ and -; at most 63, beginning with a letter or digit."`
	Location string   `placeholder:"URI" help:"The root of its files, such as file:///srv/sales or s3://bucket/sales. Default: in the data directory of the server."`
	Allow    []string `sep:"none" placeholder:"URI" help:"Another place where clients may put tables. May be repeated."`
	Property []string `sep:"none" placeholder:"KEY=VALUE" help:"A property that clients receive as a default. May be repeated."`
	S3       s3Flags  `embed:"" prefix:"s3-"`
	JSON     bool     `name:"json" help:"Print the warehouse as JSON."`
}

// s3Flags say how the bucket of a warehouse is reached.
type s3Flags struct {
	Endpoint    string `placeholder:"URL" help:"The server of its bucket. Without any --s3 flag the server's own configuration holds."`
	Region      string `placeholder:"REGION" help:"The region of its bucket."`
	PathStyle   *bool  `placeholder:"BOOL" help:"Whether the bucket stands in the path of a URL, not in its host."`
	AccessKeyID string `name:"access-key-id" placeholder:"ID" help:"The access key. Give --s3-secret-file with it."`
	SecretFile  string `placeholder:"FILE" help:"A file with the secret of the access key; - reads standard input."`
	CAFile      string `name:"ca-file" placeholder:"FILE" help:"A PEM file of authorities to trust, on the server."`
}

// secretMax is more than any secret has, in bytes.
const secretMax = 4096

// options is what the server is told of them. It reads the secret. Nil: no flag was given.
func (f s3Flags) options(stdin io.Reader) (*blob.S3Options, error) {
	if f == (s3Flags{}) {
		return nil, nil
	}
	o := &blob.S3Options{Endpoint: f.Endpoint, Region: f.Region, PathStyle: f.PathStyle, AccessKeyID: f.AccessKeyID, CAFile: f.CAFile}
	if f.SecretFile == "" {
		return o, nil
	}
	from := stdin
	if f.SecretFile != "-" {
		file, err := os.Open(f.SecretFile)
		if err != nil {
			return nil, usageError{fmt.Errorf("--s3-secret-file: %w", err)}
		}
		defer file.Close()
		from = file
	}
	secret, err := io.ReadAll(io.LimitReader(from, secretMax+1))
	if err != nil {
		return nil, usageError{fmt.Errorf("--s3-secret-file %s: %w", f.SecretFile, err)}
	}
	o.SecretAccessKey = strings.TrimSpace(string(secret))
	if o.SecretAccessKey == "" || len(secret) > secretMax {
		return nil, usageError{fmt.Errorf("--s3-secret-file %s: it is empty, or has more than %d bytes; name a file that holds the secret and nothing else", f.SecretFile, secretMax)}
	}
	return o, nil
}

// Run creates the warehouse.
func (c *warehouseCreateCommand) Run(world surroundings) error {
	properties, err := parseProperties(c.Property)
	if err != nil {
		return err
	}
	s3, err := c.S3.options(world.stdin)
	if err != nil {
		return err
	}
	body := struct {
		Name             string            `json:"name"`
		Location         string            `json:"location,omitempty"`
		AllowedLocations []string          `json:"allowed-locations,omitempty"`
		Properties       map[string]string `json:"properties,omitempty"`
		S3               *blob.S3Options   `json:"s3,omitempty"`
	}{c.Name, c.Location, c.Allow, properties, s3}
	var w warehouse
	raw, err := c.do(context.Background(), "POST", "/management/v1/warehouses", body, &w)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(world.stdout, raw)
	}
	_, err = fmt.Fprintf(world.stdout, "created warehouse %s at %s\n", w.Name, w.Location)
	return err
}

// parseProperties splits at the first =, so that values may have more of them.
func parseProperties(given []string) (map[string]string, error) {
	properties := map[string]string{}
	for _, p := range given {
		k, v, ok := strings.Cut(p, "=")
		if !ok || k == "" {
			return nil, usageError{fmt.Errorf("--property %s: it is not KEY=VALUE", p)}
		}
		if _, again := properties[k]; again {
			return nil, usageError{fmt.Errorf("--property %s: %s is given twice; give it once", p, k)}
		}
		properties[k] = v
	}
	return properties, nil
}

type warehouseListCommand struct {
	remote
	JSON bool `name:"json" help:"Print a JSON array."`
}

// listPagesMax bounds the pages that list asks for.
const (
	listPageSize = 1000
	listPagesMax = 1000
)

// Run lists all warehouses, by name.
func (c *warehouseListCommand) Run(world surroundings) error {
	all := []json.RawMessage{} // [] and not null when there are none
	token := ""
	for range listPagesMax {
		var page struct {
			Warehouses []json.RawMessage `json:"warehouses"`
			Next       *string           `json:"next-page-token"`
		}
		path := fmt.Sprintf("/management/v1/warehouses?pageSize=%d&pageToken=%s", listPageSize, queryEscape(token))
		if _, err := c.do(context.Background(), "GET", path, nil, &page); err != nil {
			return err
		}
		all = append(all, page.Warehouses...)
		if page.Next == nil || *page.Next == "" {
			return c.print(world.stdout, all)
		}
		token = *page.Next
	}
	return fmt.Errorf("the server has more than %d warehouses", listPageSize*listPagesMax)
}

func (c *warehouseListCommand) print(to io.Writer, all []json.RawMessage) error {
	if c.JSON {
		raw, err := json.Marshal(all)
		return errors.Join(err, printJSON(to, raw))
	}
	t := tabwriter.NewWriter(to, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "NAME\tCREATED\tLOCATION\n")
	for _, raw := range all {
		var w warehouse
		if err := json.Unmarshal(raw, &w); err != nil {
			return unreachableError{fmt.Errorf("%s does not answer like a Landfast server: %w", c.URL, err)}
		}
		fmt.Fprintf(t, "%s\t%s\t%s\n", w.Name, w.created(), w.Location)
	}
	return t.Flush()
}

type warehouseShowCommand struct {
	remote
	Name string `arg:"" help:"The warehouse."`
	JSON bool   `name:"json" help:"Print the warehouse as JSON."`
}

// Run shows one warehouse.
func (c *warehouseShowCommand) Run(world surroundings) error {
	var w warehouse
	raw, err := c.do(context.Background(), "GET", "/management/v1/warehouses/"+queryEscape(c.Name), nil, &w)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(world.stdout, raw)
	}
	return w.print(world.stdout)
}

type warehouseDeleteCommand struct {
	remote
	Name string `arg:"" help:"The warehouse."`
}

// Run deletes the warehouse.
func (c *warehouseDeleteCommand) Run(world surroundings) error {
	if _, err := c.do(context.Background(), "DELETE", "/management/v1/warehouses/"+queryEscape(c.Name), nil, nil); err != nil {
		return err
	}
	_, err := fmt.Fprintf(world.stdout, "deleted warehouse %s; its files stay\n", c.Name)
	return err
}

type warehouseSetS3Command struct {
	remote
	Name string  `arg:"" help:"The warehouse."`
	S3   s3Flags `embed:"" prefix:"s3-"`
}

// Help is what --help adds.
func (warehouseSetS3Command) Help() string {
	return `Give all the flags that the warehouse is to have, as when its keys were replaced: what is not
given is not kept. Without any flag the server's own configuration holds from then on. The server
looks first whether it finds the warehouse in this way.`
}

// Run changes the options.
func (c *warehouseSetS3Command) Run(world surroundings) error {
	options, err := c.S3.options(world.stdin)
	if err != nil {
		return err
	}
	if options == nil {
		options = &blob.S3Options{}
	}
	var w warehouse
	if _, err := c.do(context.Background(), "POST", "/management/v1/warehouses/"+queryEscape(c.Name)+"/s3", options, &w); err != nil {
		return err
	}
	_, err = fmt.Fprintf(world.stdout, "warehouse %s is reached in the new way\n", w.Name)
	return err
}

type warehouseSweepCommand struct {
	remote
	Name   string `arg:"" help:"The warehouse."`
	DryRun bool   `help:"Only list them."`
	JSON   bool   `name:"json" help:"Print the report as JSON."`
}

// Help is what --help adds.
func (warehouseSweepCommand) Help() string {
	return `Writes that lose against another, or are cut off, can leave a metadata file that no table
names. The server sweeps each warehouse once a day; this does it now. What it finds is deleted
after a time of grace (two request timeouts), because a request may still be on its way.`
}

// Run sweeps the warehouse.
func (c *warehouseSweepCommand) Run(world surroundings) error {
	var report struct {
		Complete  bool     `json:"complete"`
		Tables    int      `json:"tables"`
		Skipped   int      `json:"skipped"`
		Orphans   int      `json:"orphans"`
		Leftovers int      `json:"leftovers"`
		Files     []string `json:"files"`
	}
	path := fmt.Sprintf("/management/v1/warehouses/%s/sweep?dryRun=%t", queryEscape(c.Name), c.DryRun)
	raw, err := c.do(context.Background(), "POST", path, nil, &report)
	if err != nil {
		return err
	}
	if c.JSON {
		return printJSON(world.stdout, raw)
	}
	for _, f := range report.Files {
		fmt.Fprintln(world.stdout, f)
	}
	did := "given up"
	if c.DryRun {
		did = "to be given up"
	}
	fmt.Fprintf(world.stdout, "%d tables and views looked at, %d of them could not be judged; %d orphans %s, %d leftovers of interrupted writes\n",
		report.Tables, report.Skipped, report.Orphans, did, report.Leftovers)
	if !report.Complete {
		fmt.Fprintln(world.stdout, "not all were looked at: it took longer than a request may, or the server's log has a fault; its own sweep, once a day, looks at all")
	}
	return nil
}
