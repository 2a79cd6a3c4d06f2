// Command guest is a plugin for tests. It speaks the ABI by itself, without any
// package of ours, and does what the input's "do" member says; "arg" is a
// parameter. Both are plain strings without escapes.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"
	"unsafe"
)

//go:wasmimport lh1 input_read
func inputRead(p unsafe.Pointer, n, off uint32) uint32

//go:wasmimport lh1 output_write
func outputWrite(p unsafe.Pointer, n uint32)

//go:wasmimport lh1 error_write
func errorWrite(p unsafe.Pointer, n uint32)

//go:wasmimport lh1 log
func log(level int32, p unsafe.Pointer, n uint32)

//go:wasmimport lh1 host_call
func hostCall(op uint32, p unsafe.Pointer, n uint32) int32

//go:wasmimport lh1 reply_read
func replyRead(p unsafe.Pointer, n, off uint32) uint32

//go:wasmimport lh1 deadline_ms
func deadlineMS() int32

var (
	buf   [256 << 10]byte
	calls int
	kept  [][]byte
)

func main() {}

func ptr(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

func write(s string) { outputWrite(ptr([]byte(s)), uint32(len(s))) }

func member(doc []byte, name string) string {
	_, after, ok := bytes.Cut(doc, []byte(`"`+name+`":"`))
	if !ok {
		return ""
	}
	value, _, _ := bytes.Cut(after, []byte{'"'})
	return string(value)
}

func host(op uint32, req string) (string, int32) {
	n := hostCall(op, ptr([]byte(req)), uint32(len(req)))
	if n < 0 {
		return "", n
	}
	reply := make([]byte, n)
	for at := uint32(0); at < uint32(n); {
		m := replyRead(ptr(reply[at:]), min(7, uint32(n)-at), at)
		if m == 0 {
			break
		}
		at += m
	}
	return string(reply), n
}

// say answers with s, as whatever document op asks for.
func say(op uint32, s string) int32 {
	switch op {
	case 1:
		write(`{"action":"deny","reason":` + strconv.Quote(s) + `}`)
	case 2:
		write(`{"type":"text","text":` + strconv.Quote(s) + "}\n" + `{"type":"result","finish":"stop"}` + "\n")
	default:
		write(`{"text":` + strconv.Quote(s) + `}`)
	}
	return 0
}

//go:wasmexport lh1_call
func call(op, size uint32) int32 {
	calls++
	n := inputRead(unsafe.Pointer(&buf), uint32(len(buf)), 0)
	if op == 1 && !bytes.Contains(buf[:min(n, 1024)], []byte(`"do":`)) {
		write(`{"action":"continue"}`)
		return 0
	}
	doc := buf[:n]
	arg := member(doc, "arg")
	number, _ := strconv.Atoi(arg)
	switch do := member(doc, "do"); do {
	case "size":
		return say(op, strconv.Itoa(int(size)))
	case "checksum": // reads everything in odd pieces
		sum, off := uint64(0), uint32(0)
		for {
			n := inputRead(unsafe.Pointer(&buf), 997, off)
			if n == 0 {
				break
			}
			for _, c := range buf[:n] {
				sum = sum*31 + uint64(c)
			}
			off += n
		}
		return say(op, strconv.FormatUint(sum, 10)+" "+strconv.Itoa(int(off)))
	case "calls":
		return say(op, strconv.Itoa(calls))
	case "raw": // answers with arg in hex, whatever that is
		b, _ := hex.DecodeString(arg)
		write(string(b))
		return 0
	case "status":
		return int32(number)
	case "fail":
		b, _ := hex.DecodeString(arg)
		errorWrite(ptr(b), uint32(len(b)))
		return 1
	case "panic":
		panic("deliberate")
	case "exit":
		os.Exit(number)
	case "nil":
		var p *int
		*p = 1
	case "loop":
		for {
			calls++
		}
	case "deadlock":
		select {}
	case "sleep":
		t := time.Now()
		time.Sleep(time.Duration(number) * time.Millisecond)
		return say(op, time.Since(t).Round(time.Millisecond).String())
	case "grow":
		for {
			kept = append(kept, make([]byte, 1<<20))
			kept[len(kept)-1][0] = 1
		}
	case "keep": // makes the instance larger by arg MiB
		kept = append(kept, make([]byte, number<<20))
		runtime.KeepAlive(kept)
		return say(op, "kept")
	case "flood output":
		for {
			outputWrite(unsafe.Pointer(&buf), uint32(len(buf)))
		}
	case "flood error":
		for {
			errorWrite(unsafe.Pointer(&buf), 60_000)
		}
	case "flood log":
		for {
			log(1, nil, 0)
		}
	case "flood stderr":
		for range 4096 {
			fmt.Fprintln(os.Stderr, strings.Repeat("x", 99))
		}
		return say(op, "done")
	case "flood host":
		for {
			host(1, "")
		}
	case "log":
		b := []byte(arg)
		log(2, ptr(b), uint32(len(b)))
		fmt.Println("to stdout")
		return say(op, "logged")
	case "deadline":
		return say(op, strconv.Itoa(int(deadlineMS())))
	case "config":
		reply, _ := host(1, "")
		b := hex.EncodeToString([]byte(reply))
		return say(op, b)
	case "host": // arg: the op and the request in hex
		word, req, _ := strings.Cut(arg, " ")
		n, _ := strconv.Atoi(word)
		b, _ := hex.DecodeString(req)
		reply, status := host(uint32(n), string(b))
		return say(op, fmt.Sprintf("%d %s", status, reply))
	case "time":
		return say(op, strconv.FormatInt(time.Now().Unix(), 10))
	case "random":
		var b [16]byte
		rand.Read(b[:])
		return say(op, hex.EncodeToString(b[:]))
	case "env":
		return say(op, fmt.Sprintf("%d %d", len(os.Environ()), len(os.Args)))
	case "read":
		b, err := os.ReadFile(arg)
		if err != nil {
			return say(op, "error: "+err.Error())
		}
		return say(op, string(b))
	case "write":
		name, text, _ := strings.Cut(arg, " ")
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			return say(op, "error: "+err.Error())
		}
		return say(op, "written")
	case "append":
		name, text, _ := strings.Cut(arg, " ")
		f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
		if err == nil {
			_, err = f.WriteString(text)
			f.Close()
		}
		if err != nil {
			return say(op, "error: "+err.Error())
		}
		return say(op, "appended")
	case "tree":
		return say(op, tree(arg))
	case "hoard": // opens arg as often as it can
		n := 0
		for {
			if _, err := os.Open(arg); err != nil {
				return say(op, strconv.Itoa(n))
			}
			n++
		}
	case "symlink":
		from, to, _ := strings.Cut(arg, " ")
		if err := os.Symlink(from, to); err != nil {
			return say(op, "error: "+err.Error())
		}
		return say(op, "linked")
	case "stream": // arg: lines separated by |, in hex
		for _, l := range strings.Split(arg, "|") {
			b, _ := hex.DecodeString(l)
			write(string(b))
		}
		return 0
	case "drip": // a chunk, then silence
		write(`{"type":"text","text":"one"}` + "\n")
		for {
			calls++
		}
	default:
		return 2
	}
	return 3
}

// tree makes, renames, lists and removes below dir, and says what it saw.
func tree(dir string) string {
	var out []string
	step := func(name string, err error) {
		if err != nil {
			out = append(out, name+": "+err.Error())
		}
	}
	step("mkdir", os.Mkdir(dir+"/d", 0o755))
	step("write", os.WriteFile(dir+"/d/a", []byte("abc"), 0o600))
	step("rename", os.Rename(dir+"/d/a", dir+"/d/b"))
	step("truncate", os.Truncate(dir+"/d/b", 2))
	st, err := os.Stat(dir + "/d/b")
	step("stat", err)
	if err == nil {
		out = append(out, fmt.Sprint(st.Name(), st.Size(), st.IsDir()))
	}
	entries, err := os.ReadDir(dir + "/d")
	step("readdir", err)
	for _, e := range entries {
		out = append(out, e.Name())
	}
	if os.Remove(dir+"/d") == nil {
		out = append(out, "a full directory was removed")
	}
	step("remove", os.Remove(dir+"/d/b"))
	step("rmdir", os.Remove(dir+"/d"))
	return strings.Join(out, " ")
}
