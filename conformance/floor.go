package conformance

import (
	"errors"
	"fmt"
	"os"
)

// Floor is the least work that a durable step can be, measured beside the store.
type Floor struct {
	Name  string                     // "append + fdatasync", …
	Do    func(payload []byte) error // one step with that many bytes; by one goroutine at a time
	Close func() error               // frees what it holds
}

// AppendFloor appends each payload to a file of its own in dir and flushes it.
// Close removes the file.
func AppendFloor(dir string) (Floor, error) {
	f, err := os.CreateTemp(dir, "floor-*")
	if err != nil {
		return Floor{}, fmt.Errorf("make the floor's file: %w", err)
	}
	return Floor{
		Name: "append + " + flushName,
		Do: func(payload []byte) error {
			if _, err := f.Write(payload); err != nil {
				return err
			}
			return flush(f)
		},
		Close: func() error { return errors.Join(f.Close(), os.Remove(f.Name())) },
	}, nil
}
