package rest

import "slices"

// checkKnown refuses the name of a member that is not known, and names the one
// that was probably meant.
func checkKnown(name string, known []string) error {
	if slices.Contains(known, name) {
		return nil
	}
	nearest, best := "", len(name)
	for _, k := range known {
		if d := distance(name, k); d < best && d <= len(k)/2 {
			nearest, best = k, d
		}
	}
	if nearest == "" {
		return refuse(errMalformed, "The body has an unknown member %q; known are %q", name, known)
	}
	return refuse(errMalformed, "The body has an unknown member %q; did you mean %q?", name, nearest)
}

// distanceBytesMax bounds the work that a name may cause: no longer one is near anything.
const distanceBytesMax = 64

// distance is the number of bytes to insert, delete or replace to turn a into b.
func distance(a, b string) int {
	if len(a) > distanceBytesMax {
		return len(a)
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replace := diagonal
			if a[i] != b[j] {
				replace++
			}
			diagonal = row[j+1]
			row[j+1] = min(replace, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
