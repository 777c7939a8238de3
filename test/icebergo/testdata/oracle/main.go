// Command oracle applies commits to table metadata, for a test that compares the results with those of
// another implementation. It is built from a list of files, not as a package: the module of the tests
// cannot import the program's packages.
//
// Standard input is a stream of questions in JSON, standard output one answer to each.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/landfast/landfast/internal/tablemeta"
)

type question struct {
	// Base is the metadata to change; null if the table is to be created.
	Base         json.RawMessage   `json:"base"`
	BaseFile     string            `json:"base-file"`
	Requirements []json.RawMessage `json:"requirements"`
	Updates      []json.RawMessage `json:"updates"`
	UUID         string            `json:"uuid"`
	Now          int64             `json:"now"` // ms
}

type answer struct {
	// Metadata is what results, verified; absent if there is an error.
	Metadata json.RawMessage `json:"metadata,omitempty"`
	Changed  bool            `json:"changed,omitempty"`
	Error    string          `json:"error,omitempty"`
}

func main() {
	if err := answerAll(); err != nil {
		fmt.Fprintln(os.Stderr, "oracle:", err)
		os.Exit(1)
	}
}

func answerAll() error {
	in := json.NewDecoder(bufio.NewReader(os.Stdin))
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	for {
		var q question
		if err := in.Decode(&q); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := decide(q)
		if err != nil {
			a = answer{Error: err.Error()}
		}
		if err := errors.Join(encoder.Encode(a), out.Flush()); err != nil {
			return err
		}
	}
}

func decide(q question) (answer, error) {
	c := tablemeta.Change{BaseFile: q.BaseFile, UUID: q.UUID, Now: time.UnixMilli(q.Now)}
	if string(q.Base) != "null" {
		base, err := tablemeta.Parse(q.Base)
		if err != nil {
			return answer{}, err
		}
		c.Base = base
	}
	requirements := make([]tablemeta.Requirement, len(q.Requirements))
	for i, r := range q.Requirements {
		if err := requirements[i].UnmarshalJSON(r); err != nil {
			return answer{}, err
		}
	}
	if err := tablemeta.Check(c.Base, requirements); err != nil {
		return answer{}, err
	}
	c.Updates = make([]tablemeta.Update, len(q.Updates))
	for i, u := range q.Updates {
		if err := c.Updates[i].UnmarshalJSON(u); err != nil {
			return answer{}, err
		}
	}
	m, changed := c.Base, false
	if len(c.Updates) > 0 {
		var err error
		if m, changed, err = tablemeta.Commit(c); err != nil {
			return answer{}, err
		}
	}
	if m == nil {
		return answer{Metadata: json.RawMessage("null")}, nil
	}
	// What is served must be readable by whoever reads it next.
	written, err := tablemeta.Parse(m.JSON())
	if err == nil {
		err = written.Verify()
	}
	if err != nil {
		return answer{}, fmt.Errorf("unreadable metadata: %w", err)
	}
	return answer{Metadata: m.JSON(), Changed: changed}, nil
}
