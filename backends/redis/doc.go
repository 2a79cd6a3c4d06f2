// Package redis is the store on a Redis server (7.0 or later) or on Valkey, for more
// than one machine: one server, one behind Sentinels, or a Cluster.
//
// # How a server is named
//
//	redis://[user[:password]@]host[:port][/db][?options]
//	rediss://…                                            the same over TLS
//	unix://[user[:password]@]/path/to/socket[?db=0&options]
//	redis+sentinel://[…@]host[:port][,host…]/master[/db]  the master that Sentinels name
//	redis+cluster://[…@]host[:port][,host…]               a Cluster
//
// rediss+sentinel and rediss+cluster are those over TLS. The options are prefix
// ("loophost"), timeout (5s), connections to one server (64), password_file,
// sentinel_user, sentinel_password_file, and for TLS ca_file, cert_file, key_file and
// server_name. A password in a URL shows in the list of processes; password_file keeps
// it out of there. No error, log line or description repeats it.
//
// # What lies where
//
//	loophost:record:session:my%20session    a hash, the whole record
//	    birth rev chain log last head       the state: mark, log length, last commit id, head
//	    fence run gen start exp released    who owns it, until when, and the last generation
//	    sig:stop sig:cancel                 the mailbox of that run
//	    e:1 e:2 …                           log entries: "revision number checksum", then the data
//	    u:1 u:2 …                           history: what made each revision, "checksum {json}"
//	    o:1 o:2 …                           history: who acquired and released
//	    c:<commit id>                       "+revision length", or "-…" for never
//	    grave                               the tombstone of the record before; alone: it was deleted
//	loophost:index:session                  a sorted set of ids, in the order of their bytes
//
//	loophost:queue:{dispatch}:items         a stream: one entry for each item of a queue
//	loophost:queue:{dispatch}:leases        a sorted set: when the lease of an entry ends
//	loophost:queue:{dispatch}:held          a hash: an entry's nonce, delivery and worker
//	loophost:queue:{dispatch}:ids           a hash: the entry of each id
//
// The id stands in the key, so SCAN finds every record and Reindex can make the index
// again. A record is one key: a Cluster keeps it on one node, any field costs the same
// however long the log is, and a commit of one entry is one write. HMGET shows a
// record's state; HGETALL would show its whole log.
//
// # A commit
//
//	EVALSHA ▸ read the state ▸ birth, fence, revision, chain as they must be? ▸ one HSET ▸ answer
//
// It is one script, so nothing comes between check and write (S-2), and all checks
// come before the first write. Revisions are compared as texts, since a number of a
// script holds 53 bits. The chain is computed here and compared there. Where a commit
// does not say which chain it extends (Mark.Chain is ""), it is read first: one round
// trip more. Every commit id is remembered for as long as the record lives (S-3).
//
// Each unit of the history holds the chain before it and after it and the checksums of
// its head and entries; each has a checksum over itself and its place (S-7). Load
// compares the state with the newest units, ReadLog verifies what it returns, and Check
// verifies everything.
//
// # A queue
//
// A queue (store.Queue) is a stream with one consumer group, so the server hands each
// entry to one worker, and to those who wait in their turn. XINFO GROUPS, XPENDING and
// HGETALL of …:held show it. Enqueue, Extend, Done, Return and a Lease that finds an item
// are one script, one round trip. A Lease that finds none waits in XREADGROUP on a
// connection of its own, outside the pool, and leases what it got by another script; an
// item whose worker dies between the two is handed out again after two seconds. The keys
// of a queue lie in one slot. A queue needs no other setting, and of the user +@stream; a
// user without it has a store without queues. Workers that hold a lease when the server
// fails over go on, or are fenced where the failover lost it.
//
// # Guarantees
//
// S-1 to S-13, and those of store.Queue. The durability (S-5) is what the server's settings promise. It is read
// on every new connection, before anything else is sent over it:
//
//	appendonly yes, appendfsync always, no-appendfsync-on-rewrite no   power
//	anything less, everysec too                                         memory
//
// Describe says how much a crash can lose then. Settings that are changed while
// connections stay are noticed at the next connection. A commit that requires replicas
// waits for them behind the script, on the same connection (WAIT, or WAITAOF from 7.2
// on); others don't wait.
//
// A lease runs by the server's clock and decides only when an Acquire may be tried
// (S-8). A watched mailbox is polled, four times a second.
//
// # Failures
//
//   - The connection ends, or the timeout passes, before the answer to a write:
//     ErrUnknownOutcome. Nothing is sent twice; the connection is dropped.
//   - The context ends after the write was sent: its answer is awaited for another
//     quarter second, then it is ErrUnknownOutcome too.
//   - The server can't be reached: ErrUnavailable, nothing was sent.
//   - The server refuses (full memory, a failed snapshot, a replica, a missing
//     permission, too few replicas): ErrUnavailable with what to do; nothing was written.
//   - A failover loses what was acknowledged: a live process that saw it gets
//     ErrRegressed, and builds nothing on what is left (S-6). While two servers both
//     believe to be the master, only required replicas keep two owners apart; set
//     min-replicas-to-write on the servers, or require a replica.
//   - Another program wrote under a key of the store, or a stored byte changed:
//     ErrCorrupt.
//   - A server that may evict records, is older than 7.0, or is a replica is refused at
//     open, and so is a user who may not use a command that the scripts use.
package redis
