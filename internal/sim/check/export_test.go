package check

import (
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/landfast/landfast/internal/sim/history"
)

// ByPorcupine has Porcupine look for an order by itself, without anything that makes it
// easier.
func ByPorcupine(ops []history.Operation, o Options) Verdict {
	c := compile(ops)
	clear(c.lookers)
	clear(c.spaces)
	verdict := Holds
	for _, m := range c.partitions(o.Warehouses) {
		var calls []porcupine.Operation
		for _, st := range m.steps {
			calls = append(calls, porcupine.Operation{Input: st, Call: st.op.Call, Return: st.op.Return})
		}
		switch porcupine.CheckOperationsTimeout(m.rules(), calls, 5*time.Second) {
		case porcupine.Illegal:
			return Violated
		case porcupine.Unknown:
			verdict = Undecided
		}
	}
	return verdict
}
