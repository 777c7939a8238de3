package check

import "github.com/landfast/landfast/internal/sim/history"

// withLooks is the history with one more operation for each answer that showed a later state than
// that of its own change: a look at it, at the same time.
func withLooks(ops []history.Operation) []history.Operation {
	id := 0
	for i := range ops {
		id = max(id, ops[i].ID)
	}
	var looks []history.Operation
	for i := range ops {
		o := &ops[i]
		if !showsLatest(o) {
			continue
		}
		id++
		look := history.Operation{
			ID: id, Client: o.Client, Kind: history.LoadTable, Call: o.Call, Return: o.Return, Outcome: o.Outcome, Name: partsOf(o)[0].Name,
			Replays: -1, Seen: o.Latest,
		}
		if isOfView(o.Kind) {
			look.Kind = history.LoadView
		}
		looks = append(looks, look)
	}
	if looks == nil {
		return ops
	}
	return append(ops[:len(ops):len(ops)], looks...)
}

func showsLatest(o *history.Operation) bool {
	return o.Outcome == history.Done && o.Latest != (history.State{})
}

// latest wants that an answer which showed a later state than its own was right to call it later: its own
// change is in the chain, and not behind what was shown.
func (c *chains) latest(ops []history.Operation) {
	for i := range ops {
		o := &ops[i]
		if !showsLatest(o) || isOfView(o.Kind) {
			continue
		}
		for _, ch := range c.all {
			own, shown := -1, -1
			for at, v := range ch.versions {
				if v.token() == o.Token {
					own = at
				}
				if v.file == o.Latest.Location {
					shown = at
				}
			}
			switch {
			case shown < 0:
			case own > shown:
				c.problem("%v: an answer showed an older state than its own, which is in %s:\n  %v", ch.Name, ch.versions[own].file, o)
			case own < 0 && ch.whole:
				c.problem("%v: an answer showed a later state than its own, without its own before it:\n  %v", ch.Name, o)
			}
		}
	}
}
