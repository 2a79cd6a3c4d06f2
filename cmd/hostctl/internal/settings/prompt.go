package settings

import (
	"io"
	"os"
	"strings"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/host/loop"
)

// Objective reads the prompt: - is stdin, @FILE a file, anything else the text
// itself. One newline at the end of stdin or a file does not belong to it. What
// is over the bound is reported with its size as far as it was read.
func Objective(arg string, stdin io.Reader) (string, error) {
	const limit = 4 * loop.MaxObjectiveBytes // enough to tell how long it is
	var data []byte
	var err error
	path, isFile := strings.CutPrefix(arg, "@")
	switch {
	case arg == "-":
		data, err = io.ReadAll(io.LimitReader(stdin, limit))
	case isFile:
		data, err = readStart(path, limit)
	default:
		data = []byte(arg)
	}
	if err != nil {
		return "", exit.Usagef("the prompt %s: %w", arg, err)
	}
	text := string(data)
	if arg == "-" || isFile {
		text = strings.TrimSuffix(strings.TrimSuffix(text, "\n"), "\r")
	}
	const one = 1
	if err := loop.CheckBounds(text, one, one); err != nil {
		return "", err
	}
	return text, nil
}

// readStart reads the first limit bytes of a file.
func readStart(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return io.ReadAll(io.LimitReader(file, limit))
}
