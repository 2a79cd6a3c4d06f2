// Package soak holds tests that keep a host busy and then look at what it left:
// goroutines, descriptors, memory. They run for a few seconds among the other
// tests, and for as long as one likes with
//
//	make soak SOAKTIME=10m
package soak
