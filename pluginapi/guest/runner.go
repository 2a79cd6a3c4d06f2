package guest

import (
	"errors"
	"unsafe"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/wire"
)

const (
	// frontBytes is how much of an input is read before it is asked for more:
	// enough for what comes before a hook's document or a request's messages.
	frontBytes = 4 << 10
	// keepBytes bounds the buffers that are kept from call to call.
	keepBytes = 1 << 20
	// maxMessage bounds a Failure's message, so that its document stays below
	// pluginapi.MaxErrorBytes however much of it needs escaping.
	maxMessage = pluginapi.MaxErrorBytes / 8
)

// Runner makes the calls of one plugin against one host. Serve has one; tests
// have theirs. It serves one call at a time and owns all buffers of a call.
type Runner struct {
	plugin Plugin
	host   Host
	total  int    // bytes of this call's input
	in     []byte // as much of them as was read
	out    []byte
	reply  []byte
	short  bool // the host gave less input than it said
	given  bool // the plugin was given pieces of in, to keep

	// One call's reader and hook call, here so that a call allocates neither.
	reader wire.Reader
	call   HookCall
}

// NewRunner makes a Runner.
func NewRunner(p Plugin, h Host) *Runner { return &Runner{plugin: p, host: h} }

// Call makes one call with total bytes of input.
func (r *Runner) Call(op pluginapi.Op, total int) pluginapi.Status {
	if r.in = reuse(r.in); r.given {
		r.in = nil
	}
	r.total, r.short, r.given = total, false, false
	r.out, r.reply = reuse(r.out), reuse(r.reply)
	var err error
	switch {
	case op == pluginapi.OpHook && r.plugin.Hook != nil:
		err = r.hook()
	case op == pluginapi.OpProvider && r.plugin.Provider != nil:
		err = r.provider()
	case op == pluginapi.OpTool && r.plugin.Tool != nil:
		err = r.tool()
	default:
		return pluginapi.StatusUnsupported
	}
	if err == nil {
		return pluginapi.StatusOK
	}
	r.fail(err)
	return pluginapi.StatusError
}

func (r *Runner) hook() error {
	c := &r.call
	c.Call = Call{r}
	c.walk.Reset(r.open(frontBytes))
	c.walk.Point()
	if err := r.check(c.walk.Err()); err != nil {
		return err
	}
	d, err := r.plugin.Hook(c)
	if err != nil {
		return err
	}
	r.out = wire.AppendDecision(r.out[:0], &d)
	r.host.OutputWrite(r.out)
	return nil
}

func (r *Runner) provider() error {
	c := &ProviderCall{Call: Call{r}, walk: r.open(frontBytes).RequestWalk()}
	if err := r.plugin.Provider(c); err != nil {
		return err
	}
	if !c.finished {
		return failure(pluginapi.FailInternal, "the provider returned without a finish reason")
	}
	return nil
}

func (r *Runner) tool() error {
	rd := r.open(r.total)
	in := rd.ToolInput()
	if err := r.check(rd.End()); err != nil {
		return err
	}
	o, err := r.plugin.Tool(&ToolCall{Call: Call{r}, input: in})
	if err != nil {
		return err
	}
	r.out = wire.AppendToolOutput(r.out[:0], &o)
	r.host.OutputWrite(r.out)
	return nil
}

// open reads up to front bytes of the input; the reader fetches the rest when it needs it.
func (r *Runner) open(front int) *wire.Reader {
	if r.total <= front {
		r.reader.Reset(r.load(r.total), nil)
	} else {
		r.reader.Reset(r.load(front), func() string { return r.load(r.total) })
	}
	return &r.reader
}

// load reads the input up to n bytes and gives it as text, valid until the next call.
func (r *Runner) load(n int) string {
	have := len(r.in)
	if cap(r.in) < n {
		grown := make([]byte, have, n)
		copy(grown, r.in)
		r.in = grown
	}
	for len(r.in) < n {
		got := r.host.InputRead(r.in[len(r.in):n], len(r.in))
		if got <= 0 {
			r.short = true
			break
		}
		r.in = r.in[:len(r.in)+got]
	}
	return unsafe.String(unsafe.SliceData(r.in), len(r.in))
}

// check turns a decoding error into a Failure that names the input.
func (r *Runner) check(err error) error {
	if r.short {
		return failure(pluginapi.FailInvalidRequest, "the host gave less input than it announced")
	}
	if err != nil {
		return failure(pluginapi.FailInvalidRequest, "the call's input is malformed: "+err.Error())
	}
	return nil
}

func (r *Runner) fail(err error) {
	f, ok := errors.AsType[*pluginapi.Failure](err)
	if !ok {
		f = failure(pluginapi.FailInternal, err.Error())
	}
	cut := *f
	cut.Message = clip(cut.Message, maxMessage)
	r.out = wire.AppendFailure(r.out[:0], &cut)
	r.host.ErrorWrite(r.out)
}

func failure(kind pluginapi.FailureKind, message string) *pluginapi.Failure {
	return &pluginapi.Failure{Kind: kind, Message: message}
}

// clip shortens s to at most n bytes, on a rune's border.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && s[n]&0xC0 == 0x80 {
		n--
	}
	return s[:n]
}

// reuse empties a buffer for the next call, or lets a very large one go.
func reuse(b []byte) []byte {
	if cap(b) > keepBytes {
		return nil
	}
	return b[:0]
}
