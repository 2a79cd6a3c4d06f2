package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loophost/loophost/pluginapi"
	"github.com/loophost/loophost/pluginapi/guest/guesttest"
)

func TestLinksLeadNowhereOutside(t *testing.T) {
	outer := folder(t, map[string]string{"secret": "s3cret", "dir/secret": "s3cret"})
	dir := folder(t, map[string]string{"real": "inside"})
	for name, target := range map[string]string{
		"file": filepath.Join(outer, "secret"), "up": "../" + filepath.Base(outer) + "/secret", "dir": filepath.Join(outer, "dir"), "ok": "real",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct{ tool, args string }{
		{"read_file", `{"path":"file"}`},
		{"read_file", `{"path":"up"}`},
		{"read_file", `{"path":"dir/secret"}`},
		{"edit_file", `{"path":"file","old_text":"s3cret","new_text":"x"}`},
		{"write_file", `{"path":"dir/new","content":"x"}`},
		{"list_files", `{"path":"dir"}`},
		{"search_files", `{"path":"dir","pattern":"s"}`},
		{"search_files", `{"path":"file","pattern":"s"}`},
	} {
		got, err := new(guesttest.Host).Tool(newPlugin(dir), c.tool, c.args)
		if err != nil || !got.IsError || strings.Contains(got.Text, "s3cret") {
			t.Errorf("%s %s: got %q (error %v), %v", c.tool, c.args, got.Text, got.IsError, err)
		}
	}
	run(t, dir, step{"a search passes links by", "search_files", `{"pattern":"s"}`, "real:1:inside", false})
	run(t, dir, step{"a link inside is followed", "read_file", `{"path":"ok"}`, "inside", false})
	run(t, dir, step{"replacing a link replaces the link", "write_file", `{"path":"ok","content":"own"}`, "replaced ok (3 bytes)", false})
	if got := content(t, outer, "secret") + content(t, outer, "dir/secret") + content(t, dir, "real"); got != "s3crets3cretinside" {
		t.Errorf("files outside and behind the link: %q", got)
	}
	if _, err := os.Stat(filepath.Join(outer, "dir", "new")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a file was made outside: %v", err)
	}
}

func TestWithoutAWorkspaceTheOperatorIsToldWhatToDo(t *testing.T) {
	_, err := new(guesttest.Host).Tool(newPlugin(filepath.Join(t.TempDir(), "none")), "list_files", `{}`)
	var f *pluginapi.Failure
	if !errors.As(err, &f) || !strings.Contains(f.Message, "--workspace DIR") {
		t.Errorf("got %v, want a Failure that names --workspace", err)
	}
	_, err = new(guesttest.Host).Tool(newPlugin(t.TempDir()), "delete_file", `{}`)
	if !errors.As(err, &f) || f.Kind != pluginapi.FailInvalidRequest {
		t.Errorf("an unknown tool: got %v", err)
	}
}
