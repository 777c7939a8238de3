package reclaim

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/landfast/landfast/internal/blob"
	"github.com/landfast/landfast/internal/catalog"
)

const (
	// reportMax bounds the files that a report names.
	reportMax = 1000
	// candidatesMax is how many files of one table a sweep looks at. The next one goes on.
	candidatesMax = 10_000
)

// SweepReport tells what a sweep has found, or what one in earnest would do.
type SweepReport struct {
	Tables    int      // that were looked at, views included
	Skipped   int      // of these, whose orphans could not be told: registered, damaged, out of reach, or among the files of others
	Orphans   int      // metadata files that were given up
	Leftovers int      // temporary files that were deleted
	Files     []string // of both, the first 1000
}

func (s *SweepReport) add(file string) {
	if len(s.Files) < reportMax {
		s.Files = append(s.Files, file)
	}
}

// A sweep that would meet another is refused with one of these, and does nothing, or nothing more.
var (
	// ErrSweeping: this instance is at a sweep, of whatever warehouse.
	ErrSweeping = errors.New("reclaim: a sweep is under way")
	// ErrSweptElsewhere: another instance sweeps the warehouse, or did until it died less than duty.Lifetime ago.
	ErrSweptElsewhere = errors.New("reclaim: another instance sweeps the warehouse")
)

// sweepDuty is the name of the work on a warehouse.
func sweepDuty(warehouse string) string { return "sweep/" + warehouse }

// ownName is how this catalog names metadata files.
var ownName = regexp.MustCompile(`^([0-9]{5,10})-[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?:\.gz)?\.metadata\.json$`)

// Sweep looks for orphans in the metadata directories of a warehouse's live tables and
// views: metadata files that were uploaded and never named, and names them as dying; a round deletes
// them later. An orphan has a name as this catalog chooses and the uuid of the table, is older than
// the time of grace, is not in the table's history, and was made from a file of the history that has another
// successor. Where the history breaks off, what came before cannot be told from orphans. Tables
// that were registered are skipped: they may have been rolled back, and may be rolled forward; so are
// those with files of another line than the current one, as after the catalog was restored from a backup.
//
// Temporary files that are older than the time of grace are deleted. A dry run only
// reports, and may be made while another instance sweeps. With an error the report tells how far it came. When the
// warehouse is swept daily does not depend on it.
func (r *Reclaimer) Sweep(ctx context.Context, warehouse string, dryRun bool) (SweepReport, error) {
	select {
	case r.sweeping <- struct{}{}:
		defer func() { <-r.sweeping }()
	default:
		return SweepReport{}, ErrSweeping
	}
	if dryRun {
		return r.sweep(ctx, warehouse, true)
	}
	taken, err := r.opt.Duties.Take(ctx, 0, sweepDuty(warehouse))
	if err != nil {
		return SweepReport{}, err
	}
	if len(taken) == 0 {
		return SweepReport{}, ErrSweptElsewhere
	}
	defer r.opt.Duties.Done(ctx, taken...)
	return r.sweep(ctx, warehouse, false)
}

// sweep sweeps a warehouse for who is at no other sweep and, but for a dry run, has the duty.
func (r *Reclaimer) sweep(ctx context.Context, warehouse string, dryRun bool) (SweepReport, error) {
	s := &sweep{r: r, warehouse: warehouse, dryRun: dryRun}
	if err := r.mounted(ctx, warehouse); err != nil {
		return s.report, err
	}
	s.before = r.opt.Now().Add(-r.opt.Grace)
	err := s.run(ctx)
	if s.report.Orphans+s.report.Leftovers+s.report.Skipped > 0 && !dryRun {
		r.opt.Log.LogAttrs(ctx, slog.LevelInfo, "a warehouse was swept", slog.String("warehouse", warehouse),
			slog.Int("tables", s.report.Tables), slog.Int("skipped", s.report.Skipped),
			slog.Int("orphans", s.report.Orphans), slog.Int("leftovers", s.report.Leftovers))
	}
	return s.report, err
}

// sweep is one call of Sweep.
type sweep struct {
	r         *Reclaimer
	warehouse string
	dryRun    bool
	before    time.Time // what was modified later is let alone
	scope     blob.Scope
	report    SweepReport
}

// run goes on past tables whose files cannot be reached, and returns the first such error.
func (s *sweep) run(ctx context.Context) error {
	page := catalog.Page{Size: pageSize}
	var first error
	faults := 0
	for {
		find := &catalog.FindTables{Request: catalog.FindTablesRequest{Warehouse: s.warehouse, Page: page}}
		if err := s.r.opt.Runner.Do(ctx, find); err != nil {
			return cmp.Or(first, err)
		}
		s.scope = find.Result.Scope
		for _, t := range find.Result.Tables {
			// Saves work only: giving up looks at who has a file, and the name of a temporary file never comes again.
			if !s.dryRun && !s.r.opt.Duties.Has(sweepDuty(s.warehouse)) {
				return cmp.Or(first, ErrSweptElsewhere)
			}
			s.report.Tables++
			err := s.table(ctx, t)
			if err != nil {
				s.report.Skipped++
			}
			if errors.Is(err, errSkipped) || err == nil {
				continue
			}
			first = cmp.Or(first, err)
			if faults++; faults >= faultsMax || ctx.Err() != nil {
				return first
			}
		}
		if page.Token = find.Result.NextToken; page.Token == "" {
			return first
		}
	}
}

// errSkipped says that a table's files cannot be told from those of others, or not be read.
var errSkipped = errors.New("reclaim: skipped")

// table looks at the directory of one table's metadata files.
func (s *sweep) table(ctx context.Context, t catalog.TablePointer) error {
	current, err := s.scope.Canonical(t.MetadataLocation)
	own := func(place string) bool { return blob.Within(current, place) && current != place }
	if err != nil || !slices.ContainsFunc(t.Places, own) {
		return errSkipped
	}
	if t.Registered {
		return errSkipped // what was written after the file that was registered may be registered again
	}
	h, err := s.history(ctx, t)
	if errors.Is(err, blob.ErrNotFound) || errors.Is(err, errUnusable) {
		return errSkipped
	}
	if err != nil {
		return err
	}
	found, err := s.list(ctx, parent(t.MetadataLocation), h)
	if isForeign(err) {
		return errSkipped
	}
	if err != nil {
		return err
	}
	return s.give(ctx, t, h, found)
}

// history is what is known of a table's metadata files.
type history struct {
	uuid    string
	files   map[string]bool // by canonical location
	oldest  int64           // the least number in their names; -1 if none has one
	current int64           // the number in the name of the current file; -1 if it has none
}

func (s *sweep) history(ctx context.Context, t catalog.TablePointer) (history, error) {
	h := history{files: map[string]bool{}, oldest: -1, current: -1}
	if t.Kind == catalog.KindView {
		return h, nil // a view's metadata does not name what was before it, so nothing can be told
	}
	m, err := s.r.readTable(ctx, s.scope, t.MetadataLocation)
	if err != nil {
		return h, err
	}
	generations, err := s.r.history(ctx, s.scope, t.MetadataLocation, m)
	if err != nil {
		return h, err
	}
	h.uuid = m.UUID()
	if n, ok := number(t.MetadataLocation); ok {
		h.current = n
	}
	for _, f := range append(slices.Concat(generations...), t.MetadataLocation) {
		if canonical, err := s.scope.Canonical(f); err == nil {
			h.files[canonical] = true
		}
		if n, ok := number(f); ok && (h.oldest < 0 || n < h.oldest) {
			h.oldest = n
		}
	}
	return h, nil
}

// number is the number in the name of a metadata file of this catalog.
func number(location string) (int64, bool) {
	m := ownName.FindStringSubmatch(location[strings.LastIndexByte(location, '/')+1:])
	if m == nil {
		return 0, false
	}
	n, err := strconv.ParseInt(m[1], 10, 64)
	return n, err == nil
}

// list finds the files of a directory that may be orphans, and deletes temporary files.
func (s *sweep) list(ctx context.Context, dir string, h history) (found []string, err error) {
	inDir, err := s.scope.Canonical(dir)
	if err != nil {
		return nil, err
	}
	err = s.r.opt.Files.List(ctx, s.scope, dir, func(e blob.Entry) error {
		canonical, err := s.scope.Canonical(e.Location)
		if err != nil || parent(canonical) != inDir || !e.Modified.Before(s.before) {
			return nil
		}
		if e.Temporary {
			return s.leftover(ctx, e.Location)
		}
		if n, ok := number(e.Location); ok && !h.files[canonical] && h.oldest >= 0 && n > h.oldest && len(found) < candidatesMax {
			found = append(found, e.Location)
		}
		return nil
	})
	return found, err
}

// leftover deletes a temporary file. What is none of ours after all stays.
func (s *sweep) leftover(ctx context.Context, location string) error {
	if !s.dryRun {
		err := s.r.opt.Files.Delete(ctx, s.scope, location)
		if isForeign(err) {
			return nil
		}
		if err != nil {
			return err
		}
	}
	s.report.Leftovers++
	s.report.add(location)
	return nil
}

// give gives up those of the files that are the table's orphans, or reports that it would.
func (s *sweep) give(ctx context.Context, t catalog.TablePointer, h history, found []string) error {
	var orphans []string
	for _, f := range found {
		own, err := s.isOrphan(ctx, t, h, f)
		if err != nil {
			return err
		}
		if own {
			orphans = append(orphans, f)
		}
	}
	for files := range slices.Chunk(orphans, giveUpMax) {
		if !s.dryRun {
			var err error
			if files, err = s.r.giveUp(ctx, s.warehouse, files); err != nil {
				return err
			}
		}
		s.report.Orphans += len(files)
		for _, f := range files {
			s.report.add(f)
		}
	}
	return nil
}

// isOrphan tells whether a metadata file that is not in a table's history is of a decision
// of the table that came to nothing: made from a file of the history, and since overtaken. A file
// that was made from another may have been acknowledged before the catalog was restored from a backup:
// then nothing of the table is judged (errSkipped). One that was dropped without its files may have lain
// where another lies now, and may be registered again.
func (s *sweep) isOrphan(ctx context.Context, t catalog.TablePointer, h history, file string) (bool, error) {
	m, err := s.r.readTable(ctx, s.scope, file)
	if err != nil {
		return false, faultOnly(err)
	}
	place, err := s.scope.Canonical(m.Location())
	log := m.MetadataLog()
	if err != nil || !slices.Contains(t.Places, place) || h.uuid == "" || m.UUID() != h.uuid || len(log) == 0 {
		return false, nil
	}
	base, err := s.scope.Canonical(log[len(log)-1].File)
	if err != nil || !h.files[base] {
		return false, errSkipped
	}
	n, _ := number(file)
	return n <= h.current, nil
}
