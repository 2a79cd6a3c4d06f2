package settings

import (
	"strconv"
	"strings"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/store"
)

// ParseDurability reads memory, process or power, with +N for N replicas on other machines.
func ParseDurability(text string) (store.Durability, error) {
	const want = "want memory, process or power, and +N for replicas, as in power+1"
	word, replicas, counted := strings.Cut(text, "+")
	var d store.Durability
	if err := d.Level.UnmarshalText([]byte(word)); err != nil || d.Level == store.LevelNone {
		return store.Durability{}, exit.Usagef("durability %q: %s", text, want)
	}
	if counted {
		n, err := strconv.ParseUint(replicas, 10, 8)
		if err != nil {
			return store.Durability{}, exit.Usagef("durability %q: %s", text, want)
		}
		d.Replicas = int(n)
	}
	return d, nil
}
