//go:build race

package soak_test

// slowdown divides how often things are repeated: guests run many times slower
// under the race detector, and a race shows in a few calls or not at all.
const slowdown = 10
