// Package format is how a record looks inside Redis: the names of its keys, the text
// forms of fences and signals, and the units of history and log with their checksums.
// It does no I/O. Everything that it decodes was written by somebody else, so every
// decoder refuses what an encoder here would not have written.
package format
