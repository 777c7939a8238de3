package rest

import (
	"errors"

	"github.com/landfast/landfast/internal/catalog"
)

type namespaceBody struct {
	Namespace  []string          `json:"namespace"`
	Properties map[string]string `json:"properties"`
}

func showNamespace(n catalog.NamespaceState) namespaceBody {
	return namespaceBody{n.Levels, n.Properties}
}

type listNamespacesBody struct {
	Namespaces    [][]string `json:"namespaces"`
	NextPageToken *string    `json:"next-page-token"`
}

func (c *call) listNamespaces() error {
	page, err := c.page()
	if err != nil {
		return c.afterExistence(err)
	}
	parent, _, err := c.parameter("parent")
	if err != nil {
		return c.afterExistence(err)
	}
	readings := [][]string{nil}
	if parent != "" {
		readings = parentReadings(parent)
	}
	var first error
	for _, levels := range readings {
		list := &catalog.ListNamespaces{Request: catalog.ListNamespacesRequest{
			Warehouse: c.path.warehouse, Parent: levels, Page: page,
		}}
		err := c.do(list)
		if err == nil {
			return c.ok(listNamespacesBody{list.Result.Namespaces, pageToken(list.Result.NextToken)})
		}
		if first == nil {
			first = err
		}
		if !errors.Is(err, catalog.ErrNoSuchNamespace) && !errors.Is(err, catalog.ErrInvalid) {
			break
		}
	}
	return first
}

func (c *call) createNamespace() error {
	var body createNamespaceBody
	if err := c.decode(&body); err != nil {
		return err
	}
	create := &catalog.CreateNamespace{Request: catalog.CreateNamespaceRequest{
		Warehouse: c.path.warehouse, Levels: *body.Namespace, Properties: body.Properties,
	}}
	if err := c.mutate(create); err != nil {
		return err
	}
	return c.ok(showNamespace(create.Result))
}

func (c *call) loadNamespace() error {
	get := &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: c.path.warehouse, Levels: c.path.namespace}}
	if err := c.do(get); err != nil {
		return err
	}
	return c.ok(showNamespace(get.Result))
}

func (c *call) dropNamespace() error {
	drop := &catalog.DropNamespace{Request: catalog.DropNamespaceRequest{Warehouse: c.path.warehouse, Levels: c.path.namespace}}
	if err := c.mutate(drop); err != nil {
		return err
	}
	return c.done()
}

type updatedPropertiesBody struct {
	Updated []string `json:"updated"`
	Removed []string `json:"removed"`
	Missing []string `json:"missing"`
}

func (c *call) updateNamespaceProperties() error {
	var body updatePropertiesBody
	if err := c.decode(&body); err != nil {
		return err
	}
	update := &catalog.UpdateNamespaceProperties{Request: catalog.UpdateNamespacePropertiesRequest{
		Warehouse: c.path.warehouse, Levels: c.path.namespace, Removals: body.Removals, Updates: body.Updates,
	}}
	if err := c.mutate(update); err != nil {
		return err
	}
	return c.ok(updatedPropertiesBody(update.Result))
}
