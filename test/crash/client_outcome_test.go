package crash

import (
	"errors"
	"testing"
)

// What a client may conclude from an answer is what the table of errors in
// docs/rest-coverage.md promises.
func TestOutcome(t *testing.T) {
	tests := []struct {
		name   string
		answer answer
		want   outcome
		busy   bool
	}{
		{"done", answer{status: 200, body: []byte(`{}`)}, done, false},
		{"done, cut off", answer{status: 200, err: errors.New("unexpected EOF")}, unknown, false},
		{"nothing", answer{err: errors.New("connection reset")}, unknown, false},
		{"nobody knows", answer{status: 500, body: []byte(`{"error":{"type":"CommitStateUnknownException"}}`)}, unknown, false},
		{"another's error", answer{status: 502, body: []byte(`<html>`)}, unknown, false},
		{"a requirement failed", answer{status: 409, body: []byte(`{"error":{"type":"CommitFailedException","message":"Requirement failed"}}`)}, refused, false},
		{"contention", answer{status: 409, body: []byte(`{"error":{"type":"CommitFailedException","message":"It has changed nothing"}}`)}, refused, true},
		{"not found", answer{status: 404, body: []byte(`{"error":{"type":"NoSuchTableException"}}`)}, refused, false},
		{"busy", answer{status: 429, body: []byte(`{"error":{"type":"TooManyRequestsException"}}`)}, refused, true},
		{"no room", answer{status: 507, body: []byte(`{"error":{"type":"InsufficientStorageException"}}`)}, refused, true},
		{"failed, nothing changed", answer{status: 500, body: []byte(`{"error":{"type":"InternalServerError"}}`)}, refused, true},
		{"a clock", answer{status: 400, body: []byte(`{"error":{"type":"IllegalArgumentException","message":"60 seconds ahead of the server's clock"}}`)}, refused, true},
		{"nonsense", answer{status: 400, body: []byte(`{"error":{"type":"IllegalArgumentException","message":"no such schema"}}`)}, refused, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got, busy := test.answer.outcome(), test.answer.busy(); got != test.want || busy != test.busy {
				t.Errorf("%v, busy %v; want %v, %v", got, busy, test.want, test.busy)
			}
		})
	}
}
