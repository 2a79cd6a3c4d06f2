// Command generate writes the JSON Schemas of pluginapi's documents into the
// current folder, which is pluginapi/schema under go generate.
package main

import (
	"fmt"
	"os"
	"path/filepath"
)

func main() {
	if err := run("..", "."); err != nil {
		fmt.Fprintln(os.Stderr, "generate:", err)
		os.Exit(1)
	}
}

// run reads pluginapi's source in source and writes the schemas to out.
func run(source, out string) error {
	schemas, err := generate(source)
	if err != nil {
		return err
	}
	for name, content := range schemas {
		if err := os.WriteFile(filepath.Join(out, name), content, 0o644); err != nil {
			return err
		}
	}
	return nil
}
