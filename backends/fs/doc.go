// Package fs is the store in a folder: the embedded default. Many processes of
// one machine may open the same folder at once.
//
// # What lies where
//
//	<dir>/<kind>/<2 letters>/<SHA-256 of kind and id>/
//	    id.json                    whose record this is
//	    lock-1                     the commit lock: an OS lock, held for one change; longer
//	                               by a byte for each news that its holder must look for
//	    journal-1.jsonl            all that happened, one frame after the other
//	    index-1.jsonl              where every 64th commit begins; a hint
//	    released-1.json            only while the record is released: where the journal ends
//	    owner-<run>-<gen>.json     locked by the owner for as long as it lives
//	    signal-<run>-stop.json     the mailbox: one file per run and signal
//	    torn-<offset>-<uuid>       what was left of an unfinished write
//
// Beside the kinds lie the queues (store.Queue), for workers on this machine:
//
//	<dir>/queue.d/<name>/
//	    lock                       an OS lock, held for one change
//	    journal.jsonl              what was enqueued, leased, done: one line each
//	    holder-<uuid>              locked by a handle that leases, for as long as it lives
//	    torn-<offset>-<uuid>       what was left of an unfinished line
//
// Everything is text: ls, cat and jq show a record. The number after lock and
// journal is 1 unless a process that hung with the commit lock was gone past
// (see lock.go).
//
// # A frame
//
//	{"frame":"commit","at":…,"rev":…,"log":…,"body":…,"chain":…,"prev":…,"bodysum":…   ,"sum":…}
//	{"time":…,"commit":<uuid>,"content":…,"level":"power","fence":{…},"parts":"jjb"}
//	{"the":"head"}
//	{"an":"entry"}
//	"YmFzZTY0"
//
// The first line has 256 bytes: what kind of change, its place in the file, the
// revision and log length that it makes, the length and CRC32C of the lines
// behind it, store.Chain, the checksum of the header before it, and its own
// checksum. The second line is metadata. Then come the head and the log entries,
// one line each: as they are if they are JSON without line breaks, else in base64
// (the letter in "parts" says which), so every byte comes back.
//
// The kinds are create, commit, never (Resolve), acquire, release, delete, and
// tombstone, which stands alone in what is left of a deleted record. Since fences
// are frames too, whoever appends sees by a look at the end of the file
// whether anybody else did, and checks fence and revision with what it reads there.
//
// # A commit
//
//	lock ▸ any news? ▸ read 32 bytes at the end ▸ check ▸ one write through to the disk ▸ any news? ▸ unlock
//
// Those are six system calls; where writing and flushing can't be one (before Linux
// 4.7, other systems), seven. News are that somebody goes past the lock, or posts a
// signal: both make the lock file longer, and one look at it asks for both, and
// whether it is the same file still.
//
// The write goes over newlines that were written and flushed before (256 KiB
// ahead; 16 KiB for shared records), which costs about half of what appending
// does. Release cuts them off.
//
// # A queue
//
// A change of a queue is a line with a checksum over itself and the line before, written
// and flushed once, under the queue's lock. Each handle keeps in memory what the lines
// say, without the items' data, and reads what others appended: the cost does not depend
// on how much waits. When most of a journal is past, it is written anew beside the old
// one and put in its place. A worker that waits holds no lock and looks ten times a
// second at the length of the journal, and twice a second at the locks of those who hold
// something: the leases of a process that ended, or of a handle that was closed, end then.
// All leases run by this machine's clock.
//
// A process that is stopped with a queue's lock stops the queue: the others answer
// ErrUnavailable after ten seconds. A last line that is not whole is set aside; damage
// before it is ErrCorrupt.
//
// # Guarantees
//
// S-1 to S-13, and those of store.Queue. Durability is power on ext4, xfs, btrfs, overlayfs, f2fs, zfs,
// bcachefs, apfs and hfs, and process on tmpfs and ramfs. Any other filesystem is
// refused unless Config.Insist is set; then it counts as process.
//
// An owner lives while its owner file is locked; the kernel gives that lock back
// when the process ends, however it ends. A forced take-over needs only the commit
// lock, and not even that if its holder is stopped.
//
// Reading never waits for writing: Load, ReadLog, List, Signal and Renew take no
// lock unless the last frame is not whole, and then for a quarter second at most.
//
// # Failures
//
//   - A flush fails: ErrUnknownOutcome (the frame stands in the file, and nobody knows
//     whether on the disk as well); that descriptor is never flushed again.
//     Resolve and Acquire open the journal anew, write the last frame once more, and
//     flush that. Until then commits are refused. Whoever builds on a frame that
//     another descriptor wrote does the same first, so never more than the last
//     frame can be missing on the disk.
//   - A write fails (disk full, quota, I/O error): ErrUnavailable with the
//     *PathError; what was written of the frame is overwritten with newlines, which are flushed.
//   - The machine loses power at any moment: everything that was acknowledged is
//     there (commits, fences, signals, deletions), and what was on its way is there
//     whole or not at all. A last frame that misses a sector is torn: the next writer
//     moves it to a file of its own and goes on from the last whole commit. Space that
//     was never written counts as blank, also where it reads as NUL bytes. The promise
//     takes two things for granted: a sector of 512 bytes is written whole or not at
//     all, and a flush keeps what was written before it, of a file its content and
//     length, of a folder its names. The tests try every moment of a record's life.
//   - Anything else that does not match its checksum or link is ErrCorrupt, and so
//     is a file that was cut short: a record in use always has newlines behind the
//     last frame, a released one has a mark that says where it ends. What stands
//     before the damage stays readable.
//   - A file of the index is lost or wrong: it is rebuilt.
//   - Damage in the middle of a long record shows when that part is read, or by
//     Check: opening reads from one of the newest index entries on.
package fs
