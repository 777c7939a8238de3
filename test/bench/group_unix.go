//go:build unix

package main

import "syscall"

// ownGroup keeps a terminal's interrupt from a child.
func ownGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
