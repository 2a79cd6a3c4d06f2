package fs

// runHelper is replaced below.
func runHelper() bool { return false }
