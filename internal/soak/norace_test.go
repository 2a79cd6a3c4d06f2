//go:build !race

package soak_test

// slowdown divides how often things are repeated; nothing slows guests down here.
const slowdown = 1
