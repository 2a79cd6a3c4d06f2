package disk

import "github.com/loophost/loophost/host/store"

// Medium is what a folder lies on.
type Medium struct {
	Type  string      // name of the filesystem type, or its number when it has none here
	Level store.Level // what a flush there survives; LevelNone: locks or flushes can't be trusted
	Known bool        // false: this package has no opinion on the type
}
