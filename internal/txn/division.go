package txn

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/landfast/landfast/internal/key"
	"github.com/landfast/landfast/internal/store"
)

// share is what a batch does in one page.
type share struct {
	batch  store.Batch
	page   string
	conds  []store.Cond // Is and Live of records in this page
	writes []store.Write
	// empties are the prefixes under which this page must hold nothing.
	empties []store.Cond
	// seals are the prefixes under which nobody else may add: those of empties, and those
	// of the children of what the batch deletes.
	seals []key.Prefix
	// parents are Live conditions on records of other pages, held by being read between
	// this page's read and its swap.
	parents []store.Cond
	// fresh says that this page holds one record, which the batch makes, under a name nobody knows.
	fresh bool
}

// division is a batch cut into pages.
type division struct {
	shares []*share // in the order of page names
	births []*share // only beside exactly one share
}

// names of the pages that are not births.
func (d division) names() []string {
	names := make([]string, len(d.shares))
	for i, sh := range d.shares {
		names[i] = sh.page
	}
	return names
}

// divide cuts a valid batch by pages. It is pure: whoever asks for the batch's outcome divides it alike.
func divide(l Layout, b store.Batch) (division, error) {
	shares := map[string]*share{}
	in := func(page string) *share {
		sh, ok := shares[page]
		if !ok {
			sh = &share{batch: b, page: page}
			shares[page] = sh
		}
		return sh
	}
	written, is := map[key.Key]bool{}, map[key.Key]store.Version{}
	for _, w := range b.Writes {
		written[w.Key] = true
		sh := in(l.Page(w.Key))
		sh.writes = append(sh.writes, w)
	}
	sealed := func(p key.Prefix) ([]string, error) {
		pages, below, err := l.Pages(p)
		if err == nil && below != "" {
			err = fmt.Errorf("txn: %v has no finite number of pages, so nobody can say that it is empty", p)
		}
		return pages, err
	}
	for _, c := range b.Conds {
		switch c.Kind {
		case store.KindIs:
			is[c.Key] = c.Version
			sh := in(l.Page(c.Key))
			sh.conds = append(sh.conds, c)
		case store.KindEmpty:
			pages, err := sealed(c.Prefix)
			if err != nil {
				return division{}, err
			}
			for _, page := range pages {
				sh := in(page)
				sh.empties, sh.seals = append(sh.empties, c), append(sh.seals, c.Prefix)
			}
		}
	}
	for _, w := range b.Writes {
		if !w.Delete {
			continue
		}
		for _, p := range l.Children(w.Key) {
			pages, err := sealed(p)
			if err != nil {
				return division{}, err
			}
			for _, page := range pages {
				if sh := in(page); !slices.Contains(sh.seals, p) {
					sh.seals = append(sh.seals, p)
				}
			}
		}
	}
	for _, c := range b.Conds {
		if c.Kind != store.KindLive {
			continue
		}
		_, read := is[c.Key]
		if child, ok := childOf(l, c.Key, b.Writes); ok && !written[c.Key] && !read && l.Page(child) != l.Page(c.Key) {
			sh := in(l.Page(child))
			sh.parents = append(sh.parents, c)
		} else {
			sh := in(l.Page(c.Key))
			sh.conds = append(sh.conds, c)
		}
	}

	var d division
	for _, page := range slices.Sorted(maps.Keys(shares)) {
		sh := shares[page]
		sh.fresh = len(sh.writes) == 1 && len(sh.conds) == 1 && !sh.writes[0].Delete && is[sh.writes[0].Key] == store.Absent &&
			l.Birth(sh.writes[0].Key) && len(sh.empties)+len(sh.seals)+len(sh.parents) == 0
		if sh.fresh {
			d.births = append(d.births, sh)
		} else {
			d.shares = append(d.shares, sh)
		}
	}
	switch len(d.shares) {
	case 0: // births alone: the first is what leads to the others
		d.shares, d.births = d.births[:1], d.births[1:]
	case 1:
	default:
		d.shares = append(d.shares, d.births...)
		slices.SortFunc(d.shares, func(a, b *share) int { return strings.Compare(a.page, b.page) })
		d.births = nil
	}
	return d, nil
}

// childOf is a record that the batch puts below a parent.
func childOf(l Layout, parent key.Key, writes []store.Write) (key.Key, bool) {
	for _, p := range l.Children(parent) {
		for _, w := range writes {
			if !w.Delete && p.Covers(w.Key) {
				return w.Key, true
			}
		}
	}
	return key.Key{}, false
}

// digestOf tells batches apart that bear one id by mistake.
func digestOf(b store.Batch) string {
	data, err := json.Marshal(b)
	if err != nil {
		panic("txn: " + err.Error()) // strings, numbers and bytes
	}
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:8])
}
