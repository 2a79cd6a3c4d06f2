package disk

import "os"

// Recorder hears of every change that was made on the disk, in their order.
// Tests build from it what a power loss could leave.
type Recorder interface{ Record(Change) }

// ChangeKind is what was done.
type ChangeKind string

// The kinds of changes, and which fields they use beside Path or File.
const (
	Opened    ChangeKind = "opened"    // Path, File, Flag: it may have made or emptied the file
	Wrote     ChangeKind = "wrote"     // File, Data, Off
	Truncated ChangeKind = "truncated" // File, Off: the new length
	Synced    ChangeKind = "synced"    // File
	Made      ChangeKind = "made"      // Path, a folder
	Renamed   ChangeKind = "renamed"   // Path, To
	Removed   ChangeKind = "removed"   // Path
	SyncedDir ChangeKind = "syncedDir" // Path

	// File, Data, Off: what was written there before is durable, the rest of the file is as it was.
	SyncedPart ChangeKind = "syncedPart"
)

// InOrder as Change.Off says that the data went to where the file stood, or to its
// end if it was opened to append.
const InOrder = -1

// Change is one change.
type Change struct {
	Kind ChangeKind
	Path string
	To   string
	File *os.File
	Flag int
	Off  int64
	Data []byte // valid during Record
}

func record(rec Recorder, c Change) {
	if rec != nil {
		rec.Record(c)
	}
}
