package storetest_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/landfast/landfast/internal/store"
	"github.com/landfast/landfast/internal/store/mem"
	"github.com/landfast/landfast/internal/store/storetest"
)

// bentObjects is a right bucket with some of its calls replaced.
type bentObjects struct {
	*mem.Objects
	get  func(context.Context, string) (store.Object, error)
	put  func(context.Context, string, store.Tag, []byte) (store.Tag, error)
	list func(context.Context, string, string, int) ([]string, error)
	del  func(context.Context, string) error
}

func (b *bentObjects) Get(ctx context.Context, name string) (store.Object, error) {
	if b.get != nil {
		return b.get(ctx, name)
	}
	return b.Objects.Get(ctx, name)
}

func (b *bentObjects) Put(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
	if b.put != nil {
		return b.put(ctx, name, match, data)
	}
	return b.Objects.Put(ctx, name, match, data)
}

func (b *bentObjects) List(ctx context.Context, prefix, after string, limit int) ([]string, error) {
	if b.list != nil {
		return b.list(ctx, prefix, after, limit)
	}
	return b.Objects.List(ctx, prefix, after, limit)
}

func (b *bentObjects) Delete(ctx context.Context, name string) error {
	if b.del != nil {
		return b.del(ctx, name)
	}
	return b.Objects.Delete(ctx, name)
}

// overwrite puts without a condition.
func (b *bentObjects) overwrite(ctx context.Context, name string, data []byte) (store.Tag, error) {
	for {
		now, err := b.Objects.Get(ctx, name)
		if err != nil {
			return store.NoTag, err
		}
		tag, err := b.Objects.Put(ctx, name, now.Tag, data)
		if !errors.Is(err, store.ErrMismatch) {
			return tag, err
		}
	}
}

// plantedInObjects are what buckets have been seen to do, and the case that finds each.
var plantedInObjects = []struct {
	bug, foundBy string
	bend         func(b *bentObjects)
}{
	{"if-none-match is ignored", "create only if absent", func(b *bentObjects) {
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			if match == store.NoTag {
				return b.overwrite(ctx, name, data)
			}
			return b.Objects.Put(ctx, name, match, data)
		}
	}},
	{"if-match is ignored", "a stale tag", func(b *bentObjects) {
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			if match != store.NoTag {
				return b.overwrite(ctx, name, data)
			}
			return b.Objects.Put(ctx, name, match, data)
		}
	}},
	{"if-match creates", "a tag on a missing object", func(b *bentObjects) {
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			if now, err := b.Objects.Get(ctx, name); err == nil && !now.Exists() {
				match = store.NoTag
			}
			return b.Objects.Put(ctx, name, match, data)
		}
	}},
	{"two endpoints check, then write", "one of many creators wins", func(b *bentObjects) {
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			now, err := b.Objects.Get(ctx, name)
			if err != nil {
				return store.NoTag, err
			}
			if now.Tag != match {
				return store.NoTag, store.ErrMismatch
			}
			time.Sleep(gap)
			return b.overwrite(ctx, name, data)
		}
	}},
	{"swaps check, then write", "one of many swappers wins", func(b *bentObjects) {
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			now, err := b.Objects.Get(ctx, name)
			if err != nil || match == store.NoTag {
				return b.Objects.Put(ctx, name, match, data)
			}
			if now.Tag != match {
				return store.NoTag, store.ErrMismatch
			}
			time.Sleep(gap)
			return b.overwrite(ctx, name, data)
		}
	}},
	{"lists lag behind", "lists see every write", func(b *bentObjects) {
		var mu sync.Mutex
		var before []string
		b.list = func(ctx context.Context, prefix, after string, limit int) ([]string, error) {
			mu.Lock()
			defer mu.Unlock()
			now, err := b.Objects.List(ctx, prefix, after, limit)
			now, before = before, now
			return now, err
		}
	}},
	{"lists are in the order of writing", "lists are in the order of bytes", func(b *bentObjects) {
		b.list = func(ctx context.Context, prefix, after string, limit int) ([]string, error) {
			names, err := b.Objects.List(ctx, prefix, after, limit)
			slices.SortFunc(names, func(a, b string) int { return strings.Compare(strings.ToLower(a), strings.ToLower(b)) })
			return names, err
		}
	}},
	{"pages repeat their last name", "lists come in pages", func(b *bentObjects) {
		b.list = func(ctx context.Context, prefix, after string, limit int) ([]string, error) {
			if after != "" {
				after = after[:len(after)-1] + string(after[len(after)-1]-1) + "~"
			}
			return b.Objects.List(ctx, prefix, after, limit)
		}
	}},
	{"a list stops at a slash", "a prefix is a prefix", func(b *bentObjects) {
		b.list = func(ctx context.Context, prefix, after string, limit int) ([]string, error) {
			names, err := b.Objects.List(ctx, prefix, after, limit)
			return slices.DeleteFunc(names, func(n string) bool { return strings.Count(n, "/") > 1 }), err
		}
	}},
	{"a missing object is an error", "a missing object", func(b *bentObjects) {
		b.get = func(ctx context.Context, name string) (store.Object, error) {
			o, err := b.Objects.Get(ctx, name)
			if err == nil && !o.Exists() {
				err = errors.New("no such object")
			}
			return o, err
		}
	}},
	{"deletes are lost", "delete", func(b *bentObjects) {
		b.del = func(context.Context, string) error { return nil }
	}},
	{"ages are negative", "age", func(b *bentObjects) {
		b.get = func(ctx context.Context, name string) (store.Object, error) {
			o, err := b.Objects.Get(ctx, name)
			o.Age -= time.Hour
			return o, err
		}
	}},
	{"contents end at a zero", "contents come back whole", func(b *bentObjects) {
		b.get = func(ctx context.Context, name string) (store.Object, error) {
			o, err := b.Objects.Get(ctx, name)
			o.Data, _, _ = bytes.Cut(o.Data, []byte{0})
			return o, err
		}
	}},
	{"names are paths", "names with odd bytes", func(b *bentObjects) {
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			return b.Objects.Put(ctx, strings.ReplaceAll(name, "//", "/"), match, data)
		}
	}},
	{"the caller's buffer is kept", "the caller owns what it gives", func(b *bentObjects) {
		var mu sync.Mutex
		kept := map[string][]byte{}
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			tag, err := b.Objects.Put(ctx, name, match, data)
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				kept[name] = data
			}
			return tag, err
		}
		b.get = func(ctx context.Context, name string) (store.Object, error) {
			o, err := b.Objects.Get(ctx, name)
			mu.Lock()
			defer mu.Unlock()
			o.Data = kept[name]
			return o, err
		}
	}},
	{"a put outlives its context", "a cancelled context changes nothing", func(b *bentObjects) {
		b.put = func(ctx context.Context, name string, match store.Tag, data []byte) (store.Tag, error) {
			tag, err := b.Objects.Put(context.WithoutCancel(ctx), name, match, data)
			if ctx.Err() != nil {
				return store.NoTag, ctx.Err()
			}
			return tag, err
		}
	}},
}

// The suite fails, in the case that is meant to, on every planted bug; each runs in a process of
// its own, whose failure is the success.
func TestPlantedBugsInObjectsAreFound(t *testing.T) {
	if bug, ok := os.LookupEnv(plantedVariable); ok {
		for _, p := range plantedInObjects {
			if p.bug == bug {
				storetest.RunObjects(t, func(*testing.T) store.Objects {
					b := &bentObjects{Objects: mem.NewObjects()}
					p.bend(b)
					return b
				})
			}
		}
		return
	}
	for _, p := range plantedInObjects {
		t.Run(p.bug, func(t *testing.T) {
			t.Parallel()
			name := strings.ReplaceAll(p.foundBy, " ", "_")
			child := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestPlantedBugsInObjectsAreFound$/^"+name+"$")
			child.Env = append(os.Environ(), plantedVariable+"="+p.bug)
			out, err := child.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 ||
				!bytes.Contains(out, []byte("--- FAIL: TestPlantedBugsInObjectsAreFound/"+name)) {
				t.Errorf("the case %q did not find it: %v\n%s", p.foundBy, err, out)
			}
		})
	}
}
