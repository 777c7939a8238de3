package txn

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"slices"
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

	tag store.Tag
	age time.Duration
}

// statusPrefix begins the names of status records.
const statusPrefix = "tx/"

func statusName(batch string) string { return statusPrefix + batch }

// The format of a status record: a magic number with the version, JSON, a checksum.
var statusMagic = []byte("LFS1")

func (s *status) encode() []byte {
	body, err := json.Marshal(s)
	if err != nil {
		panic("txn: " + err.Error()) // strings and numbers
	}
	data := slices.Concat(statusMagic, body)
	return binary.BigEndian.AppendUint32(data, crc32.ChecksumIEEE(data))
}

// decodeStatus gives nil for an object that does not exist.
func decodeStatus(o store.Object) (*status, error) {
	if !o.Exists() {
		return nil, nil
	}
	s := &status{tag: o.Tag, age: o.Age}
	body, err := checked(o, statusMagic)
	if err == nil {
		err = json.Unmarshal(body, s)
	}
	if err == nil && s.State != pending && s.State != committed && s.State != aborted {
		err = fmt.Errorf("%w: %s is %s", errDamaged, o.Name, s.State)
	}
	if err != nil {
		return nil, err
	}
	return s, nil
}

// leased reports whether its coordinator may still be at work.
func (s *status) leased() bool { return s.age < time.Duration(s.LeaseMillis)*time.Millisecond }
