package guest

import (
	"unsafe"

	"github.com/loophost/loophost/pluginapi"
)

// served is the module's plugin. The entry point carries no receiver, so the
// module has exactly one.
var served *Runner

// Serve makes p what the module answers with. It belongs in an init function of
// the main package; the last call wins.
func Serve(p Plugin) { served = NewRunner(p, imports{}) }

//go:wasmexport lh1_call
func lh1Call(op, inLen int32) int32 {
	if served == nil || inLen < 0 {
		return int32(pluginapi.StatusUnsupported)
	}
	return int32(served.Call(pluginapi.Op(op), int(inLen)))
}

// imports is the host, through the ABI.
type imports struct{}

func (imports) InputRead(p []byte, off int) int {
	return int(inputRead(unsafe.Pointer(unsafe.SliceData(p)), int32(len(p)), int32(off)))
}

func (imports) OutputWrite(p []byte) { outputWrite(unsafe.Pointer(unsafe.SliceData(p)), int32(len(p))) }

func (imports) ErrorWrite(p []byte) { errorWrite(unsafe.Pointer(unsafe.SliceData(p)), int32(len(p))) }

func (imports) Log(level int32, p []byte) {
	hostLog(level, unsafe.Pointer(unsafe.SliceData(p)), int32(len(p)))
}

func (imports) HostCall(op pluginapi.HostOp, request []byte) int32 {
	return hostCall(int32(op), unsafe.Pointer(unsafe.SliceData(request)), int32(len(request)))
}

func (imports) ReplyRead(p []byte, off int) int {
	return int(replyRead(unsafe.Pointer(unsafe.SliceData(p)), int32(len(p)), int32(off)))
}

func (imports) DeadlineMS() int32 { return deadlineMS() }

//go:wasmimport lh1 input_read
//go:noescape
func inputRead(ptr unsafe.Pointer, n, off int32) int32

//go:wasmimport lh1 output_write
//go:noescape
func outputWrite(ptr unsafe.Pointer, n int32)

//go:wasmimport lh1 error_write
//go:noescape
func errorWrite(ptr unsafe.Pointer, n int32)

//go:wasmimport lh1 log
//go:noescape
func hostLog(level int32, ptr unsafe.Pointer, n int32)

//go:wasmimport lh1 host_call
//go:noescape
func hostCall(op int32, ptr unsafe.Pointer, n int32) int32

//go:wasmimport lh1 reply_read
//go:noescape
func replyRead(ptr unsafe.Pointer, n, off int32) int32

//go:wasmimport lh1 deadline_ms
//go:noescape
func deadlineMS() int32
