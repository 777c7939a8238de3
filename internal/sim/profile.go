package sim

import "time"

// profile is what a seed is like.
type profile struct {
	nodes, clients, steps int
	pause                 time.Duration // between steps, at most
	queue                 bool          // false: the lock that always says yes
	mix                   string
	weights               []int // of actions
	rates                 rates
	clocks                time.Duration // how far off they are at most
	keyed                 int           // of mutations that bear an idempotency key; like every rate, of ten thousand
	sweep                 bool          // in the end
	main                  int           // of choices of a warehouse: the one that stays
	focus                 int           // of choices of a name: the same as everybody's
	crowd                 int           // of choices of a name: the one table at which everybody waits on one node
	rest                  int           // the step before which all clients rest; 0: none
	lease                 time.Duration // of batches in the bucket
}

// rates are how often each fault happens, of ten thousand.
type rates struct {
	failBefore, lost, delayed, duplicate, slow int // of each request that writes
	crashBefore, crashAfter                    int // of each request that writes: the node dies
	failRead, slowRead                         int // of each read
	leave                                      int // of each call: the client does not wait for the answer
	// crashes, freezes and cuts are how many a node suffers at times of their own.
	crashes, freezes, cuts int
}

// times is the rates, so many times as high.
func (r rates) times(n int) rates {
	for _, rate := range []*int{
		&r.failBefore, &r.lost, &r.delayed, &r.duplicate, &r.slow, &r.crashBefore, &r.crashAfter, &r.failRead, &r.slowRead, &r.leave,
	} {
		*rate *= n
	}
	return r
}

// inBucket is the rates where a change takes several requests. Copies harm only there.
func (r rates) inBucket() rates {
	for _, rate := range []*int{&r.failBefore, &r.lost, &r.delayed, &r.slow, &r.crashBefore, &r.crashAfter, &r.failRead, &r.slowRead} {
		*rate = (*rate + 3) / 4
	}
	return r
}

// weather is one kind of bad luck: a seed has one or two.
var weather = []struct {
	name  string
	rates rates
}{
	{"network", rates{failBefore: 40, lost: 60, delayed: 60, duplicate: 60, slow: 20, failRead: 10, slowRead: 10, leave: 60}},
	{"crashes", rates{crashBefore: 30, crashAfter: 30, crashes: 3}},
	{"freezes", rates{freezes: 4, slow: 30, slowRead: 20, leave: 50}},
	{"lost answers", rates{lost: 200, delayed: 100, duplicate: 100}},
	{"copies", rates{duplicate: 300, delayed: 60, slow: 60}},
	{"cuts", rates{cuts: 8, delayed: 40, lost: 40}},
	{"failed reads", rates{failRead: 200, delayed: 200, lost: 60}},
}

// drawProfile is the profile of a seed.
func drawProfile(seed uint64) profile {
	s := streamOf(seed, textHash("profile"))
	p := profile{
		nodes: pick(&s, 1, 2, 2, 3), clients: pick(&s, 4, 4, 4, 5), steps: 25, pause: 300 * time.Millisecond,
		queue: s.chance(7000), keyed: pick(&s, 0, 2000, 6000), sweep: s.chance(1000),
	}
	p.lease = pick(&s, 500*time.Millisecond, 2*time.Second, 10*time.Second)
	p.focus = pick(&s, 0, 0, 5000, 8000)
	if s.chance(3000) {
		p.rest = 8 + s.n(12)
	}
	named := mixes[s.n(len(mixes))]
	if s.chance(1000) {
		named = mixes[len(mixes)-1]
	}
	p.mix, p.weights, p.main = named.name, named.weights(), pick(&s, 5000, 8000, 9500)
	if p.mix == crowded {
		p.nodes, p.clients, p.steps, p.queue, p.crowd = pick(&s, 1, 1, 2), pick(&s, 8, 10), 12, s.chance(9500), pick(&s, 8500, 9500)
		p.pause = 50 * time.Millisecond
	}
	if s.chance(2500) {
		return p // nothing but concurrency
	}
	p.rates = weather[s.n(len(weather))].rates.times(pick(&s, 1, 1, 2, 3))
	if s.chance(3000) {
		p.rates.crashBefore += 15
		p.rates.crashAfter += 15
		p.rates.freezes++
	}
	if p.crowd > 0 && s.chance(4000) {
		p.rates.cuts += 12 // in which many are told that the outcome is unknown
	}
	p.clocks = pick(&s, 0, 0, 5*time.Minute, 5*time.Hour)
	return p
}
