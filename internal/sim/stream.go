package sim

import "time"

// stream is a sequence of random numbers. Streams of different names have nothing to do
// with each other, and drawing more from one changes no other.
type stream uint64

// streamOf is the stream with this name.
func streamOf(name ...uint64) stream {
	s := uint64(0x6a09e667f3bcc908)
	for _, part := range name {
		s = mix(s ^ mix(part+0x9e3779b97f4a7c15))
	}
	return stream(s)
}

// mix is the finalizer of SplitMix64: every bit of x changes about half of the result.
func mix(x uint64) uint64 {
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

// textHash is FNV-1a: a name's part in the name of a stream.
func textHash(parts ...string) uint64 {
	h := uint64(14695981039346656037)
	for _, text := range parts {
		for i := range len(text) {
			h = (h ^ uint64(text[i])) * 1099511628211
		}
		h *= 1099511628211
	}
	return h
}

func (s *stream) next() uint64 {
	*s += 0x9e3779b97f4a7c15
	return mix(uint64(*s))
}

// n is below the bound, which is at least 1.
func (s *stream) n(bound int) int { return int(s.next() % uint64(bound)) }

// chance is true so many times in ten thousand.
func (s *stream) chance(inTenThousand int) bool { return s.n(10_000) < inTenThousand }

// between is from lo up to hi, which it excludes.
func (s *stream) between(lo, hi time.Duration) time.Duration {
	return lo + time.Duration(s.next()%uint64(hi-lo))
}

// pick is one of several.
func pick[T any](s *stream, from ...T) T { return from[s.n(len(from))] }

// weighted is an index, drawn as often as its weight says. Some weight is above zero.
func (s *stream) weighted(weights []int) int {
	total := 0
	for _, w := range weights {
		total += w
	}
	at := s.n(total)
	for i, w := range weights {
		if at < w {
			return i
		}
		at -= w
	}
	panic("sim: the weights do not add up")
}
