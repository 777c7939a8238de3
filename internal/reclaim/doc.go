// Package reclaim deletes files that nothing needs any more: those of tables that
// were purged, metadata files that fell off a table's log, and orphans.
//
// A file is deleted only after a durable batch has named it as dying. The
// operations of package catalog write such lists; a [Reclaimer] reads them, deletes
// what they name and ends them. It may be stopped at any moment and started again: what was
// deleted stays deleted, and what was not is found again, because the one file that
// leads to all others goes last.
//
// Of a purged table everything goes that is reachable from its metadata file and lies in
// one of its places: data and delete files, manifests, manifest lists, statistics, older
// metadata files; and with them what lost decisions have left beside the metadata file. What lies
// elsewhere belongs to somebody else; so may the older metadata files of a table that was
// registered, and each goes only if it says that it is of these places. A table whose property
// gc.enabled is false keeps its data and delete files. A file that cannot be read (damaged,
// encrypted, larger than its limit) stays, and with it what only it names; that is logged. A
// fault of the store leaves the list for the next round.
//
// Metadata files of live tables that no batch ever named are found by [Reclaimer.Sweep], and
// named before they are deleted. Directories stay, even empty. So do the files of dropped views.
package reclaim
