package rest

import (
	"bytes"
	"math"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/gzip"
	"github.com/maypok86/otter/v2"
)

const (
	// packedMin is the size of answers, in bytes, from which they are compressed: below it the client
	// takes longer to unpack one than to receive it.
	packedMin = 8 << 10
	// packedBytes bounds what is kept of compressed answers.
	packedBytes = 32 << 20
)

// packed keeps answers compressed, by their entity tags. Compressing takes some forty times as
// long as sending the answer as it is, so the first request for a version gets it so: each
// version of a table that is written to all the time may be asked for once. It is safe for
// concurrent use and starts no goroutines.
type packed struct {
	answers *otter.Cache[string, *packedAnswer]
	max     int // bytes of one answer
}

// packedAnswer is one version of a table that was asked for.
type packedAnswer struct {
	begun atomic.Bool // somebody compresses it, or found that it is too large to be kept
	data  []byte      // compressed; nil: not yet
}

func newPacked(maxBytes int) *packed {
	return &packed{
		max: maxBytes / 4,
		answers: otter.Must(&otter.Options[string, *packedAnswer]{
			MaximumWeight: uint64(maxBytes),
			Weigher: func(tag string, a *packedAnswer) uint32 {
				const overhead = 300 // of an entry
				return uint32(min(len(tag)+len(a.data)+overhead, math.MaxUint32))
			},
			Executor: func(do func()) { do() },
		}),
	}
}

// get gives the answer with this tag compressed, or nil where it is to be sent as it is. The parts
// make up the answer. The result must not be changed.
func (p *packed) get(tag string, parts ...[]byte) []byte {
	a, known := p.answers.GetIfPresent(tag)
	if !known {
		p.answers.Set(tag, new(packedAnswer))
		return nil
	}
	if a.data != nil {
		return a.data
	}
	if !a.begun.CompareAndSwap(false, true) {
		return nil
	}
	data := pack(parts)
	if len(data) <= p.max {
		p.answers.Set(tag, &packedAnswer{data: data})
	}
	return data
}

// packers are kept, because a new one costs a megabyte. Level 1 makes metadata a sixth of
// its size; level 6 takes four times as long for another twentieth.
var packers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(nil, gzip.BestSpeed)
	if err != nil {
		panic("rest: " + err.Error()) // the level is one that there is
	}
	return w
}}

func pack(parts [][]byte) []byte {
	w := packers.Get().(*gzip.Writer)
	defer packers.Put(w)
	var out bytes.Buffer
	w.Reset(&out)
	for _, p := range parts {
		_, _ = w.Write(p) // to memory
	}
	_ = w.Close()
	return bytes.Clone(out.Bytes()) // without the room to grow
}

// acceptsGzip tells whether a client that sent these values of Accept-Encoding takes gzip.
func acceptsGzip(headers []string) bool {
	accepted := false
	for _, header := range headers {
		for item := range strings.SplitSeq(header, ",") {
			coding, parameter, _ := strings.Cut(item, ";")
			switch coding = strings.TrimSpace(coding); {
			case strings.EqualFold(coding, "gzip"), strings.EqualFold(coding, "x-gzip"):
				return !isZero(parameter)
			case coding == "*":
				accepted = !isZero(parameter) // unless gzip is named behind it
			}
		}
	}
	return accepted
}

// isZero tells whether a parameter is a weight of zero, which means never.
func isZero(parameter string) bool {
	name, value, _ := strings.Cut(parameter, "=")
	value = strings.TrimSpace(value)
	return strings.EqualFold(strings.TrimSpace(name), "q") && value != "" && strings.Trim(value, "0.") == ""
}
