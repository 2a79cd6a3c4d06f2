package guest

import "github.com/loophost/loophost/pluginapi"

// Call is what every kind of call can ask of the host. It is valid until the
// function that was given it returns.
type Call struct{ r *Runner }

// Log writes one line to the plugin's bounded log, at a level of pluginapi.
func (c Call) Log(level int32, line string) { c.r.host.Log(level, []byte(line)) }

// Deadline is the time left for this call, in milliseconds; false: it has no
// deadline. (A time.Duration would make every module a seventh larger: importing
// package time does that.)
func (c Call) Deadline() (ms int64, ok bool) {
	left := c.r.host.DeadlineMS()
	if left < 0 {
		return 0, false
	}
	return int64(left), true
}

// Config is the plugin's configuration, a JSON object; "{}" where it has none.
// The bytes are the caller's. See Cached for a decoded form that is kept.
func (c Call) Config() ([]byte, error) {
	b, err := c.config()
	return append([]byte(nil), b...), err
}

// config is Config without the copy: valid until the next host call.
func (c Call) config() ([]byte, error) {
	b, err := c.ask(pluginapi.HostConfigGet, "", nil)
	if err == nil && len(b) == 0 {
		b = []byte("{}")
	}
	return b, err
}

// KVGet is the value of key in the plugin's store for this session; ok is false
// where there is none. It needs the capability kv.
func (c Call) KVGet(key string) (value []byte, ok bool, err error) {
	b, err := c.ask(pluginapi.HostKVGet, key, []byte(key))
	if he, is := err.(*HostError); is && he.Status == pluginapi.HostNotFound {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	return append([]byte{}, b...), true, nil
}

// KVPut stores value under key, durable with this call's result or not at all.
// An empty value deletes. It needs the capability kv.
func (c Call) KVPut(key string, value []byte) error {
	req := make([]byte, 0, len(key)+1+len(value))
	req = append(req, key...)
	req = append(req, 0)
	req = append(req, value...)
	_, err := c.ask(pluginapi.HostKVPut, key, req)
	return err
}

// ask makes a host call and reads its reply into the runner's buffer.
func (c Call) ask(op pluginapi.HostOp, key string, req []byte) ([]byte, error) {
	n := int(c.r.host.HostCall(op, req))
	if n < 0 {
		return nil, &HostError{Op: op, Key: key, Status: pluginapi.HostStatus(n)}
	}
	if cap(c.r.reply) < n {
		c.r.reply = make([]byte, n)
	}
	c.r.reply = c.r.reply[:n]
	for off := 0; off < n; {
		got := c.r.host.ReplyRead(c.r.reply[off:], off)
		if got <= 0 {
			return nil, failure(pluginapi.FailInternal, "the host gave less of a reply than it announced")
		}
		off += got
	}
	return c.r.reply, nil
}

// HostError is a host call that the host refused.
type HostError struct {
	Op     pluginapi.HostOp
	Key    string // of a key-value call
	Status pluginapi.HostStatus
}

// Error says what was asked and why it was refused.
func (e *HostError) Error() string {
	s := "host call"
	switch e.Op {
	case pluginapi.HostConfigGet:
		s = "config_get"
	case pluginapi.HostKVGet:
		s = "kv_get " + e.Key
	case pluginapi.HostKVPut:
		s = "kv_put " + e.Key
	}
	switch e.Status {
	case pluginapi.HostUnsupported:
		return s + ": the host does not know this operation"
	case pluginapi.HostDenied:
		return s + ": not granted; the manifest must request the capability and the operator grant it"
	case pluginapi.HostNotFound:
		return s + ": not found"
	case pluginapi.HostInvalid:
		return s + ": the request is malformed"
	case pluginapi.HostTooLarge:
		return s + ": over the limit for keys, values or entries"
	}
	return s + ": refused"
}
