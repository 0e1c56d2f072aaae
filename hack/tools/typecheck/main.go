// Command typecheck says whether packages and their tests compile for the system and architecture that GOOS and GOARCH
// name. It reads sources only, so it is much faster than building everything for another system.
//
//	typecheck DIRECTORY PATTERN...
package main

import (
	"fmt"
	"os"

	"golang.org/x/tools/go/packages"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "usage: typecheck DIRECTORY PATTERN...")
		os.Exit(2)
	}
	found, err := packages.Load(&packages.Config{Mode: packages.LoadAllSyntax, Tests: true, Dir: os.Args[1]}, os.Args[2:]...)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if len(found) == 0 || packages.PrintErrors(found) > 0 {
		os.Exit(1)
	}
}
