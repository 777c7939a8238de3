//go:build !linux

package crash

import (
	"errors"
	"syscall"
)

var diesWithTests *syscall.SysProcAttr

// disks are the faults that need a file system of their own: none here.
var disks []func() fault

func inNamespace() (status int, done bool) { return 0, false }

// volume is a file system of its own: there is none here.
type volume struct{}

func newVolume(string) (*volume, error) { return nil, errors.New("only Linux has volumes") }
func (*volume) close() error            { return nil }
func (*volume) keep(string) error       { return nil }
