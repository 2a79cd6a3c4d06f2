package wasm

import (
	"os"
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "loophost-guests-")
	if err != nil {
		println(err.Error())
		os.Exit(1)
	}
	guests.dir = dir
	goleak.VerifyTestMain(m, goleak.Cleanup(func(code int) {
		if err := os.RemoveAll(dir); err != nil {
			println(err.Error())
			code = 1
		}
		os.Exit(code)
	}))
}
