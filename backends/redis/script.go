package redis

import (
	"crypto/sha1"
	_ "embed"
	"encoding/hex"
)

// script is a server-side script. All of its checks come before its first write: a
// script that fails keeps what it wrote.
type script struct {
	name, body, sha string
	writes          bool
}

func newScript(name, body string, writes bool) *script {
	sum := sha1.Sum([]byte(body))
	return &script{name: name, body: body, sha: hex.EncodeToString(sum[:]), writes: writes}
}

//go:embed scripts/create.lua
var createLua string

//go:embed scripts/commit.lua
var commitLua string

//go:embed scripts/resolve.lua
var resolveLua string

//go:embed scripts/load.lua
var loadLua string

//go:embed scripts/acquire.lua
var acquireLua string

//go:embed scripts/renew.lua
var renewLua string

//go:embed scripts/release.lua
var releaseLua string

//go:embed scripts/delete.lua
var deleteLua string

//go:embed scripts/signal.lua
var signalLua string

//go:embed scripts/mailbox.lua
var mailboxLua string

//go:embed scripts/page.lua
var pageLua string

//go:embed scripts/enqueue.lua
var enqueueLua string

//go:embed scripts/lease.lua
var leaseLua string

//go:embed scripts/hold.lua
var holdLua string

//go:embed scripts/keep.lua
var keepLua string

//go:embed scripts/queued.lua
var queuedLua string

var (
	createScript  = newScript("create", createLua, true)
	commitScript  = newScript("commit", commitLua, true)
	resolveScript = newScript("resolve", resolveLua, true)
	acquireScript = newScript("acquire", acquireLua, true)
	renewScript   = newScript("renew", renewLua, true)
	releaseScript = newScript("release", releaseLua, true)
	deleteScript  = newScript("delete", deleteLua, true)
	signalScript  = newScript("signal", signalLua, true)
	loadScript    = newScript("load", loadLua, false)
	mailboxScript = newScript("mailbox", mailboxLua, false)
	pageScript    = newScript("page", pageLua, false)

	enqueueScript = newScript("enqueue", enqueueLua, true)
	leaseScript   = newScript("lease", leaseLua, true)
	holdScript    = newScript("hold", holdLua, true)
	keepScript    = newScript("keep", keepLua, true)
	queuedScript  = newScript("queued", queuedLua, false)
)
