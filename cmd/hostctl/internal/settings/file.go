package settings

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
	"github.com/loophost/loophost/cmd/hostctl/internal/strictyaml"
)

// MaxConfigBytes bounds a project's file.
const MaxConfigBytes = 1 << 20

// MaxValueBytes bounds a value that is read from a file (@FILE).
const MaxValueBytes = 4 << 20

// File is a project's file. Its keys are run's flags; nil means that it does not say.
type File struct {
	path string // as it was found, for people
	dir  string // its folder; relative paths are meant from here

	Store          *string                   `yaml:"store"`
	Provider       *string                   `yaml:"provider"`
	Model          *string                   `yaml:"model"`
	Hooks          []string                  `yaml:"hook"`
	Tools          []string                  `yaml:"tool"`
	Iterations     *int64                    `yaml:"iterations"`
	Rounds         *int64                    `yaml:"rounds"`
	MaxTokensTotal *uint64                   `yaml:"max-tokens-total"`
	Timeout        *string                   `yaml:"timeout"`
	DrainTimeout   *string                   `yaml:"drain-timeout"`
	Wait           *string                   `yaml:"wait"`
	Until          *string                   `yaml:"until"`
	System         *string                   `yaml:"system"`
	Output         *string                   `yaml:"output"`
	Quiet          *bool                     `yaml:"quiet"`
	NoColor        *bool                     `yaml:"no-color"`
	Workspace      *string                   `yaml:"workspace"`
	Durability     *string                   `yaml:"durability"`
	HookOpts       map[string]map[string]any `yaml:"hook-opt"`
	ProviderOpts   map[string]any            `yaml:"provider-opt"`
}

// ReadFile reads a project's file. A file that is not there is no error unless
// it must be; then, and for anything else that is wrong with it, the error is an
// *exit.UsageError that names file, line and key.
func ReadFile(path string, must bool) (*File, error) {
	data, err := readBounded(path, MaxConfigBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !must:
		return &File{}, nil
	case err != nil:
		return nil, exit.Usagef("config file %s: %w", path, err)
	}
	f, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	if f.dir, err = filepath.Abs(filepath.Dir(path)); err != nil {
		return nil, exit.Usagef("config file %s: %w", path, err)
	}
	return f, nil
}

// Parse reads the content of a project's file strictly: an unknown or repeated
// key, a second document and what only serves to make a file swell are errors
// with their line.
func Parse(path string, data []byte) (*File, error) {
	f := &File{path: path}
	body, err := strictyaml.Document(data)
	if err == nil {
		err = strictyaml.Counts(body, "iterations", "rounds", "max-tokens-total")
	}
	if err == nil {
		err = strictyaml.Decode(body, f, "those of hostctl run's flags that a project may set")
	}
	if bad, ok := errors.AsType[*strictyaml.Error](err); ok {
		return nil, &exit.UsageError{Text: "config file " + bad.In(path), Err: err}
	}
	return f, err
}

// Path is the file's path for people; "" where there is none.
func (f *File) Path() string { return f.path }

// value reads a value of the file: text, or @FILE for a file in the project's
// folder. A project can't name files elsewhere: it would read what is the user's.
func (f *File) value(text string) (string, error) {
	name, ok := strings.CutPrefix(text, "@")
	if !ok {
		return text, nil
	}
	root, err := os.OpenRoot(f.dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	file, err := root.Open(filepath.Clean(name))
	if err != nil {
		return "", fmt.Errorf("%w; a config file can only name files in its own folder", err)
	}
	defer file.Close()
	data, err := readAll(file, name, MaxValueBytes)
	return string(data), err
}

// resolve makes a path of the file absolute.
func (f *File) resolve(path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(f.dir, path)
}

func readBounded(path string, limit int64) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return readAll(file, path, limit)
}

func readAll(r io.Reader, name string, limit int64) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s has more than %d bytes", name, limit)
	}
	return data, nil
}
