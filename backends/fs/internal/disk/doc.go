// Package disk is what the filesystem backend asks of the operating system:
// locks, flushes, atomic small files, and what filesystem a folder is on.
package disk
