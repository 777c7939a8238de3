package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"
)

type warehouseCommand struct {
	Create warehouseCreateCommand `cmd:"" help:"Create a warehouse."`
	List   warehouseListCommand   `cmd:"" help:"List the warehouses."`
	Show   warehouseShowCommand   `cmd:"" help:"Show one warehouse."`
	Delete warehouseDeleteCommand `cmd:"" help:"Delete an empty warehouse; its files stay."`
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
	fmt.Fprintf(t, "created\t%s\n", w.created())
	return t.Flush()
}

type warehouseCreateCommand struct {
	remote
	Name     string   `arg:"" help:"Lower-case letters, digits, _ and -; at most 63, beginning with a letter or digit."`
	Location string   `placeholder:"URI" help:"The root of its files, such as file:///srv/sales. Default: in the data directory of the server."`
	Allow    []string `sep:"none" placeholder:"URI" help:"Another place where clients may put tables. May be repeated."`
	Property []string `sep:"none" placeholder:"KEY=VALUE" help:"A property that clients receive as a default. May be repeated."`
	JSON     bool     `name:"json" help:"Print the warehouse as JSON."`
}

// Run creates the warehouse.
func (c *warehouseCreateCommand) Run(world surroundings) error {
	properties, err := parseProperties(c.Property)
	if err != nil {
		return err
	}
	body := struct {
		Name             string            `json:"name"`
		Location         string            `json:"location,omitempty"`
		AllowedLocations []string          `json:"allowed-locations,omitempty"`
		Properties       map[string]string `json:"properties,omitempty"`
	}{c.Name, c.Location, c.Allow, properties}
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
