// Package format is the bytes that a record's folder holds: how they are
// written, and how they are read back without trusting them. It touches no file.
//
// Every decoder refuses what the encoder would not have written: fixed-width
// lines are decoded, encoded again and compared, so that no byte is free.
package format
