// Package redis is the store on a Redis server.
package redis
