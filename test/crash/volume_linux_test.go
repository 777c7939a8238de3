package crash

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaceVariable tells the tests that they run in a mount namespace of their own.
const namespaceVariable = "CRASH_TESTS_IN_NAMESPACE"

// inNamespace runs the tests once more in a mount namespace of their own, where they may
// mount what they like, and returns their exit status. It needs no privilege where users
// may make namespaces. Where neither that nor the privilege is given, the tests run here,
// and those that need a volume fail.
func inNamespace() (status int, done bool) {
	if os.Getenv(namespaceVariable) != "" {
		return 0, false
	}
	// The parent of a process is the thread that started it: the process below ends with this one.
	runtime.LockOSThread()
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT)
	defer signal.Stop(signals)
	var inner *exec.Cmd
	err := errors.New("no way was tried")
	for _, attr := range namespaces() {
		if inner, err = startIn(attr); err == nil {
			break
		}
	}
	if err != nil {
		return 0, false
	}
	ended := make(chan error, 1)
	go func() { ended <- inner.Wait() }()
	for {
		select {
		case s := <-signals: // the go command asks for stacks
			_ = inner.Process.Signal(s) // it may have ended
		case err := <-ended:
			if exit, ok := errors.AsType[*exec.ExitError](err); ok && exit.Exited() {
				return exit.ExitCode(), true
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1, true
			}
			return 0, true
		}
	}
}

// idsMax is how many users and groups there are in a namespace that root has made.
const idsMax = 1 << 16

// namespaces are the ways to come into a mount namespace, the best first. The users that there are stay
// the same, for PostgreSQL does not run as root: root needs others, and who is not root must not seem to be.
func namespaces() []*syscall.SysProcAttr {
	mapped := func(id, size int) []syscall.SysProcIDMap {
		return []syscall.SysProcIDMap{{ContainerID: id, HostID: id, Size: size}}
	}
	if uid, gid := os.Getuid(), os.Getgid(); uid != 0 {
		return []*syscall.SysProcAttr{{
			Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: mapped(uid, 1), GidMappings: mapped(gid, 1),
			AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		}}
	}
	return []*syscall.SysProcAttr{
		{Cloneflags: syscall.CLONE_NEWNS},
		{
			Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, UidMappings: mapped(0, idsMax), GidMappings: mapped(0, idsMax),
			GidMappingsEnableSetgroups: true,
		},
	}
}

func startIn(attr *syscall.SysProcAttr) (*exec.Cmd, error) {
	cmd := exec.Command("/proc/self/exe", os.Args[1:]...)
	cmd.Env = append(os.Environ(), namespaceVariable+"=1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	attr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr = attr
	return cmd, cmd.Start()
}

// volume is a file system of its own, in memory. What it holds is gone with it.
type volume struct {
	dir       string
	protected bool // it is read-only for whoever opens it
}

// roomy is the size of a volume that has room: far more than a campaign writes.
const roomy = 1 << 30

// newVolume makes a directory and mounts a volume there.
func newVolume(dir string) (*volume, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// What is mounted here must not show anywhere else.
	err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, "")
	if err == nil && os.Getenv(namespaceVariable) == "" {
		err = errors.New("this process has no mount namespace of its own")
	}
	if err == nil {
		err = syscall.Mount("landfast", dir, "tmpfs", 0, sized(roomy)+",mode=0700")
	}
	if err != nil {
		return nil, fmt.Errorf("mount a small disk at %s: %w; these tests need either unprivileged user namespaces "+
			"(sysctl user.max_user_namespaces and, where there is one, kernel.apparmor_restrict_unprivileged_userns=0), or root", dir, err)
	}
	return &volume{dir: dir}, nil
}

func sized(bytes uint64) string { return fmt.Sprintf("size=%d", bytes) }

func (v *volume) resize(bytes uint64) error {
	err := syscall.Mount("landfast", v.dir, "tmpfs", syscall.MS_REMOUNT, sized(bytes))
	if err == nil && v.protected {
		err = v.seal() // the flags of the mount were set anew, too
	}
	return os.NewSyscallError("remount", err)
}

// fill leaves room for so many bytes and no more.
func (v *volume) fill(slack uint64) error {
	for {
		var s syscall.Statfs_t
		if err := syscall.Statfs(v.dir, &s); err != nil {
			return err
		}
		used := (s.Blocks - s.Bfree) * uint64(s.Bsize)
		err := v.resize(used + slack)
		if !errors.Is(err, syscall.EINVAL) { // else a writer was quicker
			return err
		}
	}
}

// empty gives the volume room again.
func (v *volume) empty() error { return v.resize(roomy) }

// protect makes everything below the directory read-only, for whoever opens it from now on.
func (v *volume) protect() error {
	if err := syscall.Mount(v.dir, v.dir, "", syscall.MS_BIND, ""); err != nil {
		return os.NewSyscallError("bind", err)
	}
	v.protected = true
	return os.NewSyscallError("remount", v.seal())
}

func (v *volume) seal() error {
	return syscall.Mount("", v.dir, "", syscall.MS_BIND|syscall.MS_REMOUNT|syscall.MS_RDONLY, "")
}

// unprotect undoes protect. What was opened in between stays read-only.
func (v *volume) unprotect() error {
	v.protected = false
	return os.NewSyscallError("unmount", syscall.Unmount(v.dir, syscall.MNT_DETACH))
}

// close unmounts the volume.
func (v *volume) close() error {
	for {
		switch err := syscall.Unmount(v.dir, syscall.MNT_DETACH); {
		case errors.Is(err, syscall.EINVAL): // nothing is mounted here any more
			return nil
		case err != nil:
			return os.NewSyscallError("unmount", err)
		}
	}
}

// keep copies what the volume holds to a directory that outlives it.
func (v *volume) keep(to string) error {
	return filepath.WalkDir(v.dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, path[len(v.dir):])
		switch {
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !e.Type().IsRegular():
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(target, data, 0o600)
	})
}
