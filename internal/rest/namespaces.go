package rest

import (
	"errors"

	"github.com/landfast/landfast/internal/catalog"
)

// namespace answers with a namespace.
func (c *call) namespace(n catalog.NamespaceState) error {
	b := borrow()
	defer b.giveBack()
	b.data = appendNames(append(b.data, `{"namespace":`...), n.Levels)
	b.data = append(appendProperties(append(b.data, `,"properties":`...), n.Properties), '}')
	return c.okBuffer(b)
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
			return c.namespaces(list.Result)
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

// namespaces answers with a page of namespaces.
func (c *call) namespaces(list catalog.ListNamespacesResult) error {
	b := borrow()
	defer b.giveBack()
	b.data = append(b.data, `{"namespaces":[`...)
	for i, levels := range list.Namespaces {
		if i > 0 {
			b.data = append(b.data, ',')
		}
		b.data = appendNames(b.data, levels)
	}
	b.data = appendNextPage(append(b.data, ']'), list.NextToken)
	return c.okBuffer(b)
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
	return c.namespace(create.Result)
}

func (c *call) loadNamespace() error {
	get := &catalog.GetNamespace{Request: catalog.GetNamespaceRequest{Warehouse: c.path.warehouse, Levels: c.path.namespace}}
	if err := c.do(get); err != nil {
		return err
	}
	return c.namespace(get.Result)
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
