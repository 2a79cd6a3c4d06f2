package pluginapi

import "errors"

// Raw is a JSON value that is passed on as it is. It does what json.RawMessage
// does, without importing encoding/json into every module.
type Raw []byte

// MarshalJSON gives the value itself; a nil one is null.
func (r Raw) MarshalJSON() ([]byte, error) {
	if r == nil {
		return []byte("null"), nil
	}
	return r, nil
}

// UnmarshalJSON keeps a copy of data.
func (r *Raw) UnmarshalJSON(data []byte) error {
	if r == nil {
		return errors.New("pluginapi: UnmarshalJSON on a nil Raw")
	}
	*r = append((*r)[:0], data...)
	return nil
}
