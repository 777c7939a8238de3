package catalog

import "github.com/landfast/landfast/internal/kernel"

// Operations makes every operation by its name: what decodes one that was shipped or logged.
var Operations = kernel.Registry{
	"bootstrap":                   func() kernel.Operation { return new(Bootstrap) },
	"create-warehouse":            func() kernel.Operation { return new(CreateWarehouse) },
	"get-warehouse":               func() kernel.Operation { return new(GetWarehouse) },
	"list-warehouses":             func() kernel.Operation { return new(ListWarehouses) },
	"set-warehouse-s3":            func() kernel.Operation { return new(SetWarehouseS3) },
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
	"unregister-table":            func() kernel.Operation { return new(UnregisterTable) },
	"commit-transaction":          func() kernel.Operation { return new(CommitTransaction) },
	"create-view":                 func() kernel.Operation { return new(CreateView) },
	"load-view":                   func() kernel.Operation { return new(LoadView) },
	"view-exists":                 func() kernel.Operation { return new(ViewExists) },
	"list-views":                  func() kernel.Operation { return new(ListViews) },
	"replace-view":                func() kernel.Operation { return new(ReplaceView) },
	"register-view":               func() kernel.Operation { return new(RegisterView) },
	"drop-view":                   func() kernel.Operation { return new(DropView) },
	"rename-view":                 func() kernel.Operation { return new(RenameView) },
	"find-expired":                func() kernel.Operation { return new(FindExpired) },
	"forget-expired":              func() kernel.Operation { return new(ForgetExpired) },
	"find-dying":                  func() kernel.Operation { return new(FindDying) },
	"end-dying":                   func() kernel.Operation { return new(EndDying) },
	"find-tables":                 func() kernel.Operation { return new(FindTables) },
	"take-duties":                 func() kernel.Operation { return new(TakeDuties) },
	"renew-duties":                func() kernel.Operation { return new(RenewDuties) },
	"end-duties":                  func() kernel.Operation { return new(EndDuties) },
	"give-up":                     func() kernel.Operation { return new(GiveUp) },
}

// Once holds another operation, which it decodes by the registry.
func init() { Operations["once"] = func() kernel.Operation { return new(Once) } }
