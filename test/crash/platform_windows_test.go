package crash

const hasClock = false

// Neither a process can be frozen here, nor its clock be set.
var freezes, clocks, drifts []func() fault
