package crash

import "syscall"

// diesWithTests has a server end when the tests do, however those end.
var diesWithTests = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}

// disks are the faults that need a file system of their own.
var disks = []func() fault{
	func() fault { return &fullDisk{} },
	func() fault { return &readOnlyDisk{} },
}
