// Command rebuild builds the bundled plugins.
//
//	go run ./plugins/bundled/internal/rebuild          build and write
//	go run ./plugins/bundled/internal/rebuild -check   build and compare; exit 1 on a difference
package main

import (
	"flag"
	"fmt"
	"os"
)

func main() {
	check := flag.Bool("check", false, "compare with the files that are there instead of writing them")
	flag.Parse()
	if err := run(*check); err != nil {
		fmt.Fprintln(os.Stderr, "rebuild:", err)
		os.Exit(1)
	}
}

func run(check bool) error {
	r, err := locate()
	if err != nil {
		return err
	}
	built, err := r.build()
	if err != nil {
		return err
	}
	if check {
		return built.compare(r.bundled)
	}
	return built.write(r.bundled)
}
