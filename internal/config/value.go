package config

import (
	"fmt"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// value reads and writes one field of a Config as text. The error of Set says
// what is right; it does not repeat the value.
type value interface {
	Set(s string) error
	String() string
}

type text string

func (v *text) Set(s string) error { *v = text(s); return nil }
func (v *text) String() string     { return string(*v) }

// secret is a text that is never shown.
type secret string

func (v *secret) Set(s string) error { *v = secret(s); return nil }
func (v *secret) String() string {
	if *v == "" {
		return ""
	}
	return "***"
}

type boolean bool

func (v *boolean) Set(s string) error {
	switch s {
	case "true":
		*v = true
	case "false":
		*v = false
	default:
		return fmt.Errorf("write true or false")
	}
	return nil
}
func (v *boolean) String() string { return strconv.FormatBool(bool(*v)) }

// optionalBoolean is one of which it is known whether it was given; empty, it was not.
type optionalBoolean struct{ field **bool }

func (v optionalBoolean) Set(s string) error {
	if s == "" {
		*v.field = nil
		return nil
	}
	var b boolean
	if err := b.Set(s); err != nil {
		return err
	}
	*v.field = (*bool)(&b)
	return nil
}

func (v optionalBoolean) String() string {
	if *v.field == nil {
		return ""
	}
	return strconv.FormatBool(**v.field)
}

// choice is a text that is one of a few.
type choice struct {
	field *string
	of    []string
}

func (v choice) Set(s string) error {
	if !slices.Contains(v.of, s) {
		return fmt.Errorf("write one of: %s", strings.Join(v.of, ", "))
	}
	*v.field = s
	return nil
}
func (v choice) String() string { return *v.field }

// optionalChoice is one of which it is known whether it was given; empty, it was not.
type optionalChoice struct{ choice }

func (v optionalChoice) Set(s string) error {
	if s == "" {
		*v.field = ""
		return nil
	}
	return v.choice.Set(s)
}

// number is a whole number from 0 on.
type number int

func (v *number) Set(s string) error {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil {
		return fmt.Errorf("write a whole number, such as 16")
	}
	*v = number(n)
	return nil
}
func (v *number) String() string { return strconv.Itoa(int(*v)) }

type level slog.Level

func (v *level) Set(s string) error {
	for _, l := range []slog.Level{slog.LevelDebug, slog.LevelInfo, slog.LevelWarn, slog.LevelError} {
		if strings.EqualFold(s, l.String()) {
			*v = level(l)
			return nil
		}
	}
	return fmt.Errorf("write one of: debug, info, warn, error")
}
func (v *level) String() string { return strings.ToLower(slog.Level(*v).String()) }

type duration time.Duration

func (v *duration) Set(s string) error {
	if iso, ok := strings.CutPrefix(s, "PT"); ok {
		s = strings.ToLower(iso) // ISO 8601 without days: PT1H30M
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		return fmt.Errorf("write a number and a unit, such as 500ms, 30s or 2m")
	}
	*v = duration(d)
	return nil
}

// String leaves out the units that are zero: 1m and not 1m0s.
func (v *duration) String() string {
	s := time.Duration(*v).String()
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// size is a number of bytes: a whole number, alone or with one of the units.
type size int64

var sizeUnits = []struct {
	name  string
	bytes int64
}{{"GiB", 1 << 30}, {"MiB", 1 << 20}, {"KiB", 1 << 10}, {"B", 1}, {"", 1}}

func (v *size) Set(s string) error {
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.name)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			break
		}
		*v = size(int64(n) * u.bytes)
		return nil
	}
	return fmt.Errorf("write a number of bytes, or a number and KiB, MiB or GiB, such as 64MiB")
}

func (v *size) String() string {
	for _, u := range sizeUnits {
		if n := int64(*v); n != 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.name
		}
	}
	return "0B"
}
