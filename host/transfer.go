package host

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/loophost/loophost/host/store"
	"github.com/loophost/loophost/internal/strictjson"
	"github.com/loophost/loophost/pluginapi"
)

// batchBytes bounds the entries of one commit when a log is copied.
const batchBytes = 8 << 20

// exportFormat names the export's format and version.
const exportFormat = "loophost-session/1"

// ErrExport says that an export can't be read: it is cut off, changed, or none.
var ErrExport = errors.New("not a whole loophost session export")

type exportHeader struct {
	Format string          `json:"format"`
	ID     string          `json:"id"`
	Mark   store.Mark      `json:"mark"`
	Length uint64          `json:"log_length"`
	Head   json.RawMessage `json:"head"`
}

type exportEntry struct {
	Seq   uint64          `json:"seq"`
	Entry json.RawMessage `json:"entry"`
}

type exportTrailer struct {
	SHA256 string `json:"sha256"` // hex, of all lines before this one
}

// Export writes the session as JSON lines: a header, every log entry, and a
// SHA-256 over both. It reads a state that was committed; a live run is not disturbed.
func (h *Host) Export(ctx context.Context, id string, w io.Writer) error {
	view, err := h.Show(ctx, id)
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := bufio.NewWriter(io.MultiWriter(w, sum))
	enc := json.NewEncoder(out)
	enc.SetEscapeHTML(false)
	header := exportHeader{Format: exportFormat, ID: id, Mark: view.Record.Mark, Length: view.Record.LogLength, Head: view.Record.Head}
	if err := enc.Encode(header); err != nil {
		return err
	}
	err = h.eachEntry(ctx, view.Record.Key, 1, view.Record.LogLength, func(raw store.Entry, _ Entry) error {
		return enc.Encode(exportEntry{Seq: raw.Seq, Entry: raw.Data})
	})
	if err != nil {
		return err
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return json.NewEncoder(w).Encode(exportTrailer{SHA256: hex.EncodeToString(sum.Sum(nil))})
}

// Import creates a session from an export, under id ("": the exported one), with
// a new birth. The export is read to its end and checked before the session is
// created; ErrExport says that it is damaged, store.ErrExists that the id is taken.
func (h *Host) Import(ctx context.Context, r io.Reader, id string) (string, error) {
	header, entries, err := readExport(r)
	if err != nil {
		return "", err
	}
	if id == "" {
		id = header.ID
	}
	head, err := DecodeHead(header.Head)
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrExport, err)
	}
	if head.Child != nil {
		head.Child = nil // it was dispatched to the exported session, not to this one
		if header.Head, err = head.Encode(); err != nil {
			return "", err
		}
	}
	return id, h.createWith(ctx, store.SessionKey(id), header.Head, entries)
}

func readExport(r io.Reader) (exportHeader, [][]byte, error) {
	in := bufio.NewReader(r)
	sum := sha256.New()
	var header exportHeader
	line, err := exportLine(in, nil)
	if err != nil {
		return header, nil, err
	}
	if err := strictjson.Unmarshal(line, &header); err != nil || header.Format != exportFormat {
		return header, nil, fmt.Errorf("%w: the first line is not a %s header", ErrExport, exportFormat)
	}
	sum.Write(line)
	var entries [][]byte
	for seq := uint64(1); seq <= header.Length; seq++ {
		line, err := exportLine(in, sum)
		if err != nil {
			return header, nil, err
		}
		var e exportEntry
		if err := strictjson.Unmarshal(line, &e); err != nil || e.Seq != seq {
			return header, nil, fmt.Errorf("%w: line %d is not log entry %d", ErrExport, seq+1, seq)
		}
		if _, err := DecodeEntry(e.Entry); err != nil {
			return header, nil, fmt.Errorf("%w: entry %d: %w", ErrExport, seq, err)
		}
		entries = append(entries, bytes.Clone(e.Entry))
	}
	line, err = exportLine(in, nil)
	if err != nil {
		return header, nil, err
	}
	var trailer exportTrailer
	if err := strictjson.Unmarshal(line, &trailer); err != nil || trailer.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		return header, nil, fmt.Errorf("%w: the checksum does not fit; export it again", ErrExport)
	}
	if _, err := in.ReadByte(); !errors.Is(err, io.EOF) {
		return header, nil, fmt.Errorf("%w: there is something behind the checksum", ErrExport)
	}
	return header, entries, nil
}

// maxExportLine bounds a line: the largest entry that a store takes, and what
// stands around it.
const maxExportLine = store.MaxEntryBytes + 4<<10

// exportLine reads one line, and adds it to sum unless that is nil.
func exportLine(in *bufio.Reader, sum hash.Hash) ([]byte, error) {
	var line []byte
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxExportLine {
			return nil, fmt.Errorf("%w: a line has more than %d bytes", ErrExport, maxExportLine)
		}
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		case errors.Is(err, io.EOF):
			return nil, fmt.Errorf("%w: it is cut off", ErrExport)
		case err != nil:
			return nil, err
		}
		if sum != nil {
			sum.Write(line)
		}
		return line, nil
	}
}

// createWith creates a session that has a log already. Where it takes several
// commits, a failure between them deletes what was begun.
func (h *Host) createWith(ctx context.Context, key store.Key, head []byte, entries [][]byte) error {
	batches := inBatches(entries)
	first := NewHead(h.now())
	firstHead, err := first.Encode()
	if err != nil {
		return err
	}
	if len(batches) <= 1 {
		firstHead = head
	}
	c := store.Commit{ID: h.cfg.NewID(), Head: firstHead}
	if len(batches) > 0 {
		c.Entries = batches[0]
		batches = batches[1:]
	}
	ack, err := h.cfg.Store.Create(ctx, key, c)
	if err != nil || len(batches) == 0 {
		return err
	}
	claim := store.Claim{Owner: h.cfg.Owner, Run: h.cfg.NewID(), TTL: h.cfg.LeaseTTL}
	fence, _, err := h.cfg.Store.Acquire(ctx, key, claim)
	if err != nil {
		return errors.Join(err, h.discard(context.WithoutCancel(ctx), key, ack.Mark))
	}
	mark := ack.Mark
	for i, batch := range batches {
		c := store.Commit{ID: h.cfg.NewID(), After: mark, Head: firstHead, Entries: batch}
		if i == len(batches)-1 {
			c.Head = head
		}
		next, err := h.cfg.Store.Commit(ctx, key, fence, c)
		if err != nil {
			return errors.Join(err, h.discard(context.WithoutCancel(ctx), key, ack.Mark))
		}
		mark = next.Mark
	}
	return h.cfg.Store.Release(ctx, key, fence)
}

// discard deletes the half of a session that createWith began, whoever holds it.
func (h *Host) discard(ctx context.Context, key store.Key, begun store.Mark) error {
	fence, rec, err := h.cfg.Store.Acquire(ctx, key, store.Claim{Owner: h.cfg.Owner, Run: h.cfg.NewID(), TTL: h.cfg.LeaseTTL, Force: true})
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil
	case err != nil:
		return fmt.Errorf("half of session %q is left; delete it: %w", key.ID, err)
	case rec.Mark.Birth != begun.Birth: // deleted and made anew by somebody else
		return h.cfg.Store.Release(ctx, key, fence)
	}
	if err := h.cfg.Store.Delete(ctx, key, fence); err != nil {
		return fmt.Errorf("half of session %q is left; delete it: %w", key.ID, err)
	}
	return nil
}

func inBatches(entries [][]byte) [][][]byte {
	var out [][][]byte
	start, size := 0, 0
	for i, e := range entries {
		if size > 0 && size+len(e) > batchBytes {
			out = append(out, entries[start:i])
			start, size = i, 0
		}
		size += len(e)
	}
	if start < len(entries) {
		out = append(out, entries[start:])
	}
	return out
}

// Fork creates session dst with the messages and key-value entries of src, and
// no loop: the way on from a session whose loop can't be recovered. Tool calls
// without a result get one that says that their effect is unknown.
func (h *Host) Fork(ctx context.Context, src, dst string) error {
	view, err := h.Show(ctx, src)
	if err != nil {
		return err
	}
	now, id := h.now(), h.cfg.NewID()
	head := NewHead(now)
	head.Forked = &ForkInfo{SessionID: src, Mark: view.Record.Mark}
	conv := newConversation()
	var entries [][]byte
	add := func(e Entry) error {
		data, err := e.Encode()
		if err != nil {
			return err
		}
		entries = append(entries, data)
		return conv.apply(&e, nil)
	}
	err = h.eachEntry(ctx, view.Record.Key, 1, view.Record.LogLength, func(_ store.Entry, e Entry) error {
		if e.Type != EntryMessage && e.Type != EntryKV {
			return nil
		}
		return add(e)
	})
	if err != nil {
		return err
	}
	for _, call := range append([]pluginapi.ToolCall(nil), conv.open...) {
		status, text := unknownEffect(call)
		result := &pluginapi.ToolResult{CallID: call.ID, Name: call.Name, Status: status, Text: text}
		if err := add(Entry{Type: EntryMessage, Time: now, ExecutionID: id, Message: &pluginapi.Message{Role: pluginapi.RoleTool, Result: result}}); err != nil {
			return err
		}
	}
	if err := add(Entry{Type: EntryForked, Time: now, ExecutionID: id, Forked: head.Forked}); err != nil {
		return err
	}
	data, err := head.Encode()
	if err != nil {
		return err
	}
	return h.createWith(ctx, store.SessionKey(dst), data, entries)
}
