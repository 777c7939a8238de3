package txn

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/landfast/landfast/internal/store"
)

// state of a batch of several pages.
type state string

const (
	pending   state = "PENDING"
	committed state = "COMMITTED"
	aborted   state = "ABORTED"
)

// status is the object in which the fate of one batch is decided. Its age, by the
// store's clock, says whether its lease is over: nobody's own clock is asked.
type status struct {
	Batch string `json:"batch"`
	State state  `json:"state"`
	// Pages are those that the batch puts intents in: what recovery has to visit.
	Pages []string `json:"pages"`
	// Digest is that of the batch: an intent with another is void.
	Digest      string `json:"digest"`
	LeaseMillis int64  `json:"lease-ms"`
	// Void says that the batch was made impossible before it was seen, by who asked for its outcome.
	Void bool `json:"void,omitempty"`

	tag store.Tag
	age time.Duration
}

// statusPrefix begins the names of status records.
const statusPrefix = "tx/"

func statusName(batch string) string { return statusPrefix + batch }

func (s *status) encode() []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic("txn: " + err.Error()) // strings and numbers
	}
	return data
}

// decodeStatus gives nil for an object that does not exist.
func decodeStatus(o store.Object) (*status, error) {
	if !o.Exists() {
		return nil, nil
	}
	s := &status{tag: o.Tag, age: o.Age}
	err := json.Unmarshal(o.Data, s)
	if err == nil && s.State != pending && s.State != committed && s.State != aborted {
		err = errors.New("no such state")
	}
	if err != nil {
		return nil, fmt.Errorf("txn: status record %s is damaged: %w", o.Name, err)
	}
	return s, nil
}

// leased reports whether its coordinator may still be at work.
func (s *status) leased() bool { return s.age < time.Duration(s.LeaseMillis)*time.Millisecond }
