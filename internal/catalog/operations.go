package catalog

import "github.com/landfast/landfast/internal/kernel"

// Operations makes every operation by its name: what decodes one that was shipped or logged.
var Operations = kernel.Registry{
	"bootstrap":                   func() kernel.Operation { return new(Bootstrap) },
	"create-warehouse":            func() kernel.Operation { return new(CreateWarehouse) },
	"get-warehouse":               func() kernel.Operation { return new(GetWarehouse) },
	"list-warehouses":             func() kernel.Operation { return new(ListWarehouses) },
	"delete-warehouse":            func() kernel.Operation { return new(DeleteWarehouse) },
	"create-namespace":            func() kernel.Operation { return new(CreateNamespace) },
	"get-namespace":               func() kernel.Operation { return new(GetNamespace) },
	"list-namespaces":             func() kernel.Operation { return new(ListNamespaces) },
	"update-namespace-properties": func() kernel.Operation { return new(UpdateNamespaceProperties) },
	"drop-namespace":              func() kernel.Operation { return new(DropNamespace) },
	"create-table":                func() kernel.Operation { return new(CreateTable) },
	"load-table":                  func() kernel.Operation { return new(LoadTable) },
	"table-exists":                func() kernel.Operation { return new(TableExists) },
	"list-tables":                 func() kernel.Operation { return new(ListTables) },
	"commit-table":                func() kernel.Operation { return new(CommitTable) },
	"register-table":              func() kernel.Operation { return new(RegisterTable) },
	"drop-table":                  func() kernel.Operation { return new(DropTable) },
	"rename-table":                func() kernel.Operation { return new(RenameTable) },
	"find-dying":                  func() kernel.Operation { return new(FindDying) },
	"end-dying":                   func() kernel.Operation { return new(EndDying) },
}
