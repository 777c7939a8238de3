// Package blobtest checks what every [blob.Store] and [blob.Roots] promises,
// whatever lies behind them. An implementation runs it with [Run]; what only that
// implementation has (links, pipes, full disks) it tests itself.
package blobtest
