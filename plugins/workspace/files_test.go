package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

// folder is a workspace on disk with some files.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, content := range files {
		p := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// step is one tool call and what comes of it.
type step struct {
	name, tool, args string
	want             string // the whole answer, or with a leading "~" a part of it
	isError          bool
}

func run(t *testing.T, dir string, s step) {
	t.Helper()
	got, err := new(guesttest.Host).Tool(newPlugin(dir), s.tool, s.args)
	if err != nil {
		t.Fatalf("%s: %v", s.name, err)
	}
	part, isPart := strings.CutPrefix(s.want, "~")
	if got.IsError != s.isError || (isPart && !strings.Contains(got.Text, part)) || (!isPart && got.Text != s.want) {
		t.Errorf("%s: %s %s\ngot  %q (error %v)\nwant %q (error %v)", s.name, s.tool, s.args, got.Text, got.IsError, s.want, s.isError)
	}
}

func content(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReadFile(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.txt": "one\ntwo\r\nthree", "empty": "", "bin": "a\x00b", "latin": "gr\xfc\xdfe",
		"docs/n.md": "x\n", "long": strings.Repeat("line\n", 3000), "wide": strings.Repeat("ä", 40_000) + "\nend\n",
		"huge": strings.Repeat("x", maxFile+1),
	})
	for _, s := range []step{
		{"a whole file is as it is", "read_file", `{"path":"a.txt"}`, "one\ntwo\r\nthree", false},
		{"some lines of it", "read_file", `{"path":"a.txt","offset":2,"limit":1}`, "two\r\n[truncated: lines 2–2 of 3 are shown; go on with offset 3]", false},
		{"to its end", "read_file", `{"path":"a.txt","offset":2}`, "two\r\nthree\n[lines 2–3 of 3]", false},
		{"past its end", "read_file", `{"path":"a.txt","offset":4}`, "a.txt has 3 lines; offset 4 is past its end", true},
		{"an empty file", "read_file", `{"path":"empty"}`, "[empty is empty]", false},
		{"in a folder", "read_file", `{"path":"./docs/../docs/n.md"}`, "x\n", false},
		{"by the name of the mount", "read_file", `{"path":"/workspace/docs/n.md"}`, "x\n", false},
		{"more lines than one call gives", "read_file", `{"path":"long"}`, "~[truncated: lines 1–2000 of 3000 are shown; go on with offset 2001]", false},
		{"a very long line", "read_file", `{"path":"wide"}`, "~[truncated: line 1 of 2 has 80001 bytes; only its start is shown", false},
		{"after it", "read_file", `{"path":"wide","offset":2}`, "end\n[lines 2–2 of 2]", false},
		{"a NUL makes it binary", "read_file", `{"path":"bin"}`, "bin is a binary file; this tool is for text (UTF-8) only", true},
		{"so does another encoding", "read_file", `{"path":"latin"}`, "latin is a binary file; this tool is for text (UTF-8) only", true},
		{"too large", "read_file", `{"path":"huge"}`, "huge is larger than 8 MiB, which is the limit", true},
		{"not there", "read_file", `{"path":"b.txt"}`, "b.txt does not exist; list_files shows what there is", true},
		{"a folder", "read_file", `{"path":"docs"}`, "docs is a folder", true},
		{"a folder by its slash", "read_file", `{"path":"docs/"}`, "docs/ is a folder; name a file", true},
		{"below a file", "read_file", `{"path":"a.txt/b"}`, "a.txt/b: a part of the path is a file, not a folder", true},
		{"outside", "read_file", `{"path":"../x"}`, "../x is outside the workspace; give a path relative to the workspace, such as docs/notes.txt", true},
		{"outside by a detour", "read_file", `{"path":"docs/../../x"}`, "~is outside the workspace", true},
		{"absolute", "read_file", `{"path":"/etc/passwd"}`, "~is outside the workspace", true},
		{"absolute by a detour", "read_file", `{"path":"/workspace/../etc/passwd"}`, "~is outside the workspace", true},
		{"a name that only starts like the mount", "read_file", `{"path":"/workspaces/x"}`, "~is outside the workspace", true},
		{"a NUL in the path", "read_file", `{"path":"a\u0000b"}`, "the path holds a NUL character", true},
		{"no path", "read_file", `{}`, "the argument path is missing or empty", true},
		{"line zero", "read_file", `{"path":"a.txt","offset":0}`, "offset and limit count from 1", true},
		{"an unknown argument", "read_file", `{"path":"a.txt","lines":3}`, `the arguments don't fit the tool's schema: json: unknown field "lines" at byte 15`, true},
	} {
		run(t, dir, s)
	}
}

func TestWriteFile(t *testing.T) {
	dir := folder(t, map[string]string{"a.txt": "old", "docs/n": "x", ".loophost-tmp-0": "left over"})
	for _, s := range []step{
		{"replaces", "write_file", `{"path":"a.txt","content":"new\n"}`, "replaced a.txt (4 bytes)", false},
		{"creates, with folders", "write_file", `{"path":"x/y/z.txt","content":"ä"}`, "created x/y/z.txt (2 bytes)", false},
		{"may be empty", "write_file", `{"path":"e","content":""}`, "created e (0 bytes)", false},
		{"not a folder", "write_file", `{"path":"docs","content":"x"}`, "docs is a folder; name a file", true},
		{"not the workspace", "write_file", `{"path":".","content":"x"}`, ". is a folder; name a file", true},
		{"not below a file", "write_file", `{"path":"a.txt/b","content":"x"}`, "~a.txt", true},
		{"not outside", "write_file", `{"path":"../b","content":"x"}`, "~is outside the workspace", true},
		{"no content", "write_file", `{"path":"b"}`, "the argument content is missing", true},
		{"too much", "write_file", `{"path":"b","content":"` + strings.Repeat("x", maxFile+1) + `"}`, "b: the text has 8388609 bytes; the limit is 8388608", true},
	} {
		run(t, dir, s)
	}
	for name, want := range map[string]string{"a.txt": "new\n", "x/y/z.txt": "ä", "e": "", ".loophost-tmp-0": "left over"} {
		if got := content(t, dir, name); got != want {
			t.Errorf("%s holds %q, want %q", name, got, want)
		}
	}
	// Nothing else is there: no file that was refused and nothing temporary.
	run(t, dir, step{"what is left", "list_files", `{"recursive":true}`, ".loophost-tmp-0\na.txt\ndocs/\ndocs/n\ne\nx/\nx/y/\nx/y/z.txt", false})
}

func TestEditFile(t *testing.T) {
	const text = "a = 1\nb = 2\na = 1\nc = 3\r\nd = 4\r\naaa\n"
	dir := folder(t, map[string]string{"f": text, "bin": "\x00"})
	for _, s := range []step{
		{"a unique piece", "edit_file", `{"path":"f","old_text":"b = 2","new_text":"b = 20"}`, "edited f at line 2", false},
		{"may be deleted", "edit_file", `{"path":"f","old_text":"b = 20\n","new_text":""}`, "edited f at line 2", false},
		{"not unique", "edit_file", `{"path":"f","old_text":"a = 1","new_text":"x"}`, "f is unchanged: old_text stands there more than once, first in line 1 and last in line 2; take more of the lines around it", true},
		{"not unique by overlap", "edit_file", `{"path":"f","old_text":"aa","new_text":"x"}`, "~more than once", true},
		{"not there", "edit_file", `{"path":"f","old_text":"b  = 2","new_text":"x"}`, "~old_text was not found; it must be exactly as in the file", true},
		{"other line ends", "edit_file", `{"path":"f","old_text":"c = 3\nd","new_text":"x"}`, `f is unchanged: old_text was not found; the file's lines end with \r\n, those of old_text with \n`, true},
		{"nothing to look for", "edit_file", `{"path":"f","old_text":"","new_text":"x"}`, "~old_text is empty", true},
		{"no change", "edit_file", `{"path":"f","old_text":"aaa","new_text":"aaa"}`, "~are the same", true},
		{"no new text", "edit_file", `{"path":"f","old_text":"aaa"}`, "the argument new_text is missing", true},
		{"binary", "edit_file", `{"path":"bin","old_text":"a","new_text":"x"}`, "~is a binary file", true},
		{"not there at all", "edit_file", `{"path":"g","old_text":"a","new_text":"x"}`, "~g does not exist", true},
	} {
		run(t, dir, s)
	}
	if got, want := content(t, dir, "f"), "a = 1\na = 1\nc = 3\r\nd = 4\r\naaa\n"; got != want {
		t.Errorf("f holds %q, want %q", got, want)
	}
}

func TestListFiles(t *testing.T) {
	files := map[string]string{"b.txt": "", "a/x": "", "a/b/y": "", ".git/config": "", "z/.git/k": ""}
	for i := range maxListed + 1 {
		files["many/"+strconv.Itoa(10_000+i)] = ""
	}
	dir := folder(t, files)
	if err := os.Symlink("b.txt", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(dir, "none"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, s := range []step{
		{"the workspace", "list_files", `{}`, ".git/\na/\nb.txt\nlink (link)\nmany/\nnone/\nz/", false},
		{"a folder, with all below", "list_files", `{"path":"a","recursive":true}`, "a/b/\na/b/y\na/x", false},
		{"nothing in .git", "list_files", `{"path":"z","recursive":true}`, "z/.git/", false},
		{"unless it is asked for", "list_files", `{"path":"z/.git"}`, "z/.git/k", false},
		{"an empty folder", "list_files", `{"path":"none"}`, "[none is an empty folder]", false},
		{"more than one call gives", "list_files", `{"path":"many"}`, "~many/10999\n[truncated: 1000 entries of more are shown; list a folder further down]", false},
		{"a file", "list_files", `{"path":"b.txt"}`, "b.txt is a file; read_file shows it", true},
		{"not there", "list_files", `{"path":"q"}`, "~q does not exist", true},
		{"outside", "list_files", `{"path":".."}`, "~is outside the workspace", true},
	} {
		run(t, dir, s)
	}
}

func TestSearchFiles(t *testing.T) {
	dir := folder(t, map[string]string{
		"a.txt": "one\nTwo (2)\nthree\r\n", "d/b.txt": "two (2)\n", "bin": "two (2)\x00", ".git/x": "two (2)",
		"wide": strings.Repeat("ä", 500) + "needle" + strings.Repeat("ö", 500) + "\n",
		"many": strings.Repeat("hit\n", maxMatches+1), "huge": "two (2)" + strings.Repeat("x", maxFile),
	})
	for _, s := range []step{
		{"a text, as it is", "search_files", `{"pattern":"wo (2)"}`, "a.txt:2:Two (2)\nd/b.txt:1:two (2)\n[skipped: 1 file, binary; skipped: 1 file, over 8 MiB]", false},
		{"a regular expression", "search_files", `{"pattern":"^(?i)two","regexp":true,"path":"d"}`, "d/b.txt:1:two (2)", false},
		{"an end of a line", "search_files", `{"pattern":"ree$","regexp":true,"path":"a.txt"}`, "a.txt:3:three", false},
		{"the middle of a long line", "search_files", `{"pattern":"needle","path":"wide"}`, "wide:1:…" + strings.Repeat("ä", 40) + "needle" + strings.Repeat("ö", 77) + "…", false},
		{"more than one call gives", "search_files", `{"pattern":"hit","path":"many"}`, "~many:200:hit\n[truncated: 200 matches of more are shown; search a folder further down or for a rarer pattern]", false},
		{"nothing", "search_files", `{"pattern":"zzz","path":"d"}`, "[no match in d]", false},
		{"a broken expression", "search_files", `{"pattern":"(","regexp":true}`, "~the pattern is no regular expression of RE2's syntax", true},
		{"over lines", "search_files", `{"pattern":"a\nb"}`, "the pattern holds a line's end; lines are searched one by one", true},
		{"no pattern", "search_files", `{}`, "the argument pattern is missing or empty", true},
		{"a binary file by name", "search_files", `{"pattern":"two","path":"bin"}`, "~bin is a binary file", true},
		{"not there", "search_files", `{"pattern":"two","path":"q"}`, "~q does not exist", true},
		{"outside", "search_files", `{"pattern":"two","path":"/"}`, "~is outside the workspace", true},
	} {
		run(t, dir, s)
	}
}

func TestAWalkEndsBeforeItsDeadline(t *testing.T) {
	dir := folder(t, map[string]string{"a": "x", "b": "x"})
	h := &guesttest.Host{Deadline: (reserveMS - 1) * time.Millisecond}
	got, err := h.Tool(newPlugin(dir), "search_files", `{"pattern":"x"}`)
	if want := "[no match in .; truncated: out of time at a]"; err != nil || got.Text != want {
		t.Errorf("got %q, %v, want %q", got.Text, err, want)
	}
}
