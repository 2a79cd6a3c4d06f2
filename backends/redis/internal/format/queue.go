package format

import "strings"

// QueueKeys are the keys of a queue: its items, the ends of their leases, who holds them,
// and where each id is. The braces put all of them into one slot of a Cluster.
func QueueKeys(prefix, queue string) (items, leases, held, ids string) {
	base := prefix + ":queue:{" + queue + "}:"
	return base + "items", base + "leases", base + "held", base + "ids"
}

// Token is what a holder shows: the item's entry in the stream, and which hand-out it is.
func Token(entry, nonce string) string { return entry + "." + nonce }

// ParseToken reads what Token wrote; ok is false for what no Token wrote.
func ParseToken(token string) (entry, nonce string, ok bool) {
	entry, nonce, ok = strings.Cut(token, ".")
	return entry, nonce, ok && entry != "" && nonce != "" && !strings.ContainsFunc(nonce, func(r rune) bool {
		return (r < '0' || r > '9') && (r < 'a' || r > 'f') && r != '-'
	})
}
