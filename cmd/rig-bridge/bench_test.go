package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// BenchmarkCall measures a call from the client's side to the answer, for profiles of the whole way:
// go test -run xxx -bench Call/read -cpuprofile cpu.out ./cmd/rig-bridge
func BenchmarkCall(b *testing.B) {
	_, c := running(b, &settings{})
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "a.txt"), []byte(strings.Repeat("one line of text\n", 60)), 0o644); err != nil {
		b.Fatal(err)
	}
	w := open(b, c, dir)
	for _, step := range []struct {
		tool string
		args e2e.Args
	}{
		{"read", e2e.Args{"path": "a.txt"}},
		{"write", e2e.Args{"path": "new.txt", "content": "x", "expected_revision": "missing"}},
		{"bash", e2e.Args{"command": "true"}},
	} {
		b.Run(step.tool, func(b *testing.B) {
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				args := e2e.Args{"workspace_id": w}
				for k, v := range step.args {
					args[k] = v
				}
				if step.tool != "read" {
					args["request_key"] = fmt.Sprint(step.tool, b.Name(), i)
				}
				if step.tool == "write" {
					args["path"] = fmt.Sprint(i, ".txt")
				}
				if res := call(b, c, step.tool, args); res.IsError {
					b.Fatal(res.Text())
				}
			}
		})
	}
}
