package guest

import "bytes"

// Cached keeps a plugin's configuration in its decoded form between the calls
// of an instance. It asks the host on every call, which is cheap, and decodes
// only what it has not seen.
type Cached[T any] struct {
	// Decode reads a configuration, a JSON object. Its error is the operator's to read.
	Decode func(config string) (T, error)

	raw   []byte
	value T
	err   error
}

// Get is the configuration for this call, or Decode's error for it.
func (s *Cached[T]) Get(c Call) (T, error) {
	b, err := c.config()
	if err != nil {
		var none T
		return none, err
	}
	if s.raw == nil || !bytes.Equal(b, s.raw) {
		s.raw = bytes.Clone(b)
		s.value, s.err = s.Decode(string(b))
	}
	return s.value, s.err
}
