//go:build unix

package main

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/loophost/loophost/cmd/hostctl/internal/exit"
)

// sealed gives the lines of an export a checksum that fits.
func sealed(lines ...string) string {
	body := strings.Join(lines, "\n") + "\n"
	return body + fmt.Sprintf("{\"sha256\":\"%x\"}\n", sha256.Sum256([]byte(body)))
}

func TestAnExportThatIsNotWholeCreatesNothing(t *testing.T) {
	c := newCommander(t)
	c.session(t, "s")
	export := c.want(t, exit.OK, "session", "export", "s").out
	c.want(t, exit.OK, "session", "delete", "s")
	lines := strings.Split(strings.TrimSuffix(export, "\n"), "\n")
	lines = lines[:len(lines)-1]
	with := func(i int, old, new string) string {
		changed := append([]string(nil), lines...)
		changed[i] = strings.Replace(changed[i], old, new, 1)
		if changed[i] == lines[i] {
			t.Fatalf("%s is not in line %d: %s", old, i, lines[i])
		}
		return sealed(changed...)
	}
	length := fmt.Sprintf(`"log_length":%d`, len(lines)-1)
	hostile := map[string]string{
		"nothing":                      "",
		"one line end":                 "\n",
		"no JSON":                      "hello\n",
		"bytes":                        "\x00\xff\x1f\x8b\n",
		"its checksum alone":           sealed(),
		"another format":               with(0, "loophost-session/1", "loophost-session/2"),
		"one entry more than it says":  with(0, length, fmt.Sprintf(`"log_length":%d`, len(lines)-2)),
		"one entry less than it says":  with(0, length, fmt.Sprintf(`"log_length":%d`, len(lines))),
		"more entries than there are":  with(0, length, `"log_length":18446744073709551615`),
		"a negative length":            with(0, length, `"log_length":-1`),
		"a field it does not know":     with(0, `"format"`, `"x":1,"format"`),
		"a field twice":                with(0, `"format"`, `"id":"s","format"`),
		"a head that breaks a bound":   with(0, `"max_total_rounds":20`, `"max_total_rounds":2000`),
		"a head with negative counts":  with(0, `"iterations_started":1`, `"iterations_started":-1`),
		"a head that is none":          with(0, `"head":{`, `"head":null,"x":{`),
		"an entry of an unknown type":  with(1, `"type":"`, `"type":"x`),
		"an entry out of order":        with(2, `"seq":2`, `"seq":3`),
		"an entry twice":               sealed(append(append([]string(nil), lines[:3]...), lines[2:]...)...),
		"something behind it":          export + "x",
		"itself behind it":             export + export,
		"another checksum":             strings.Replace(export, `"sha256":"`, `"sha256":"0`, 1),
		"lines of another system":      strings.ReplaceAll(export, "\n", "\r\n"),
		"a line that never ends":       strings.Repeat("x", 20<<20),
		"lists in lists":               strings.Repeat("[", 1<<20) + "\n",
		"lists in lists, in the entry": sealed(lines[0], `{"seq":1,"entry":`+strings.Repeat("[", 100_000)+strings.Repeat("]", 100_000)+`}`),
	}
	stride := max(1, len(export)/40) | 1
	for i := 0; i < len(export); i += stride {
		hostile[fmt.Sprintf("cut to %d bytes", i)] = export[:i]
		b := []byte(export)
		b[i] ^= 1
		hostile[fmt.Sprintf("byte %d changed", i)] = string(b)
	}
	for name, data := range hostile {
		c.in = data
		got := c.call(t, "session", "import", "-", "--session=t", "--output=json")
		if got.code != exit.Error || got.kind(t) != "bad_export" {
			t.Errorf("%s: got exit code %d, %.300q; want 1, bad_export", name, got.code, got.out)
		}
		if len(got.err) > 2_000 {
			t.Errorf("%s: the message has %d bytes", name, len(got.err))
		}
	}
	c.in = with(0, `"id":"s"`, `"id":""`)
	if got := c.want(t, exit.Usage, "session", "import", "-", "--output=json"); got.kind(t) != "invalid_id" {
		t.Errorf("without an id: got %.300q", got.out)
	}
	if got := c.want(t, exit.OK, "session", "list").out; got != "" {
		t.Errorf("left are %s", got)
	}
	c.in = export
	c.want(t, exit.OK, "session", "import", "-")
	c.want(t, exit.OK, "session", "log", "s")
	c.want(t, exit.Usage, "session", "import", c.dir+"/none")
	// Only a file is replaced by an export.
	link, file, device := filepath.Join(c.dir, "link"), filepath.Join(c.dir, "file"), filepath.Join(c.dir, "pipe")
	if err := errors.Join(os.Symlink("file", link), os.WriteFile(file, nil, 0o600), syscall.Mkfifo(device, 0o600)); err != nil {
		t.Fatal(err)
	}
	c.want(t, exit.Usage, "session", "export", "s", "--file", c.dir)
	c.want(t, exit.Usage, "session", "export", "s", "--file", device)
	c.want(t, exit.Error, "session", "export", "s", "--file", c.dir+"/none/x")
	c.want(t, exit.OK, "session", "export", "s", "--file", link)
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced (%v)", err)
	}
	if info, err := os.Lstat(device); err != nil || info.Mode()&os.ModeNamedPipe == 0 {
		t.Errorf("the pipe was replaced (%v)", err)
	}
	if written, err := os.ReadFile(file); err != nil || len(written) != len(c.want(t, exit.OK, "session", "export", "s").out) {
		t.Errorf("got %d bytes through the link (%v)", len(written), err)
	}
}
