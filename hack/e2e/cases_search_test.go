package e2e

import (
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// answers calls a tool that must succeed with this text.
func (k *room) answers(want, tool string, args daemon.Args) {
	k.Helper()
	if got := k.ok(tool, args).Text(); got != want {
		k.Errorf("%s %v: %.300q, want %q", tool, args, got, want)
	}
}

// refusal calls a tool that must fail with the code.
func (k *room) refusal(code, tool string, args daemon.Args) {
	k.Helper()
	if r := k.call(tool, args); !r.IsError || r.Code() != code {
		k.Errorf("%s %v: %.300s, want %s", tool, args, r.Raw, code)
	}
}

func nearName(k *room) {
	const real = "Screenshot\u00a02026.txt"
	k.put(real, "shot\n")
	r := k.ok("read", daemon.Args{"path": "Screenshot 2026.txt"})
	if r.Text() != "shot\n" || r.String("path") != k.path(real) {
		k.Errorf("%s", r.Raw)
	}
	k.put("Screenshot\u202f2026.txt", "other\n")
	r = k.call("read", daemon.Args{"path": "Screenshot 2026.txt"})
	if !r.IsError || !strings.Contains(r.Text(), `Screenshot\u00a02026.txt`) || !strings.Contains(r.Text(), `Screenshot\u202f2026.txt`) {
		k.Errorf("with two such names: %s", r.Raw)
	}
}

func bothSpellings(k *room) {
	k.put("a/caf\u00e9.txt", "needle\n")
	k.put("b/cafe\u0301.txt", "needle\n")
	k.answers("a/caf\u00e9.txt\nb/cafe\u0301.txt", "find", daemon.Args{"pattern": "caf\u00e9.txt"})
	k.answers("a/caf\u00e9.txt:1: needle\nb/cafe\u0301.txt:1: needle", "grep", daemon.Args{"pattern": "needle", "glob": "caf\u00e9.*"})
}

func linkLoops(k *room) {
	k.put("a/b/f.txt", "needle\n")
	for name, to := range map[string]string{"a/b/up": "..", "a/self": "self", "x": "y", "y": "x"} {
		if err := os.Symlink(to, k.path(name)); err != nil {
			k.Fatal(err)
		}
	}
	began := time.Now()
	k.answers("f.txt\nup/", "ls", daemon.Args{"path": "a/b"})
	k.answers("a/b/f.txt", "find", daemon.Args{"pattern": "f.txt"})
	k.answers("a/b/f.txt:1: needle", "grep", daemon.Args{"pattern": "needle"})
	k.within(time.Second, began)
}

func pipesAndHugeFiles(k *room) {
	if err := syscall.Mkfifo(k.path("pipe"), 0o644); err != nil {
		k.Fatal(err)
	}
	k.put("f", "needle\n")
	k.refusal("UNSUPPORTED_FILE", "read", daemon.Args{"path": "pipe"})
	k.refusal("UNSUPPORTED_FILE", "grep", daemon.Args{"path": "pipe", "pattern": "needle"})
	k.answers("f:1: needle", "grep", daemon.Args{"pattern": "needle"})
	k.put("huge", "")
	if err := os.Truncate(k.path("huge"), 2<<30); err != nil { // sparse
		k.Fatal(err)
	}
	before := residentMB(k, k.d.Pid())
	k.refusal("FILE_TOO_LARGE", "read", daemon.Args{"path": "huge", "offset": 40_000_000, "limit": 20})
	if now := residentMB(k, k.d.Pid()); now > before+64 {
		k.Errorf("resident memory grew from %d to %d MB", before, now)
	}
}

func ignoredPathIsNamed(k *room) {
	k.put(".git/HEAD", "ref: refs/heads/main\n")
	k.put(".gitignore", "dist/\n")
	k.put("dist/app.js", "needle\n")
	k.answers("No files found matching pattern\n\n[1 ignored match: dist/app.js]", "find", daemon.Args{"pattern": "dist/app.js"})
	k.answers("No files found matching pattern", "find", daemon.Args{"pattern": "dist/other.js"})
}

func missingAnchor(k *room) {
	for i := range 40 {
		for j := range 25 {
			k.put(fmt.Sprintf("d%d/f%d.ts", i, j), "")
		}
	}
	began := time.Now()
	for _, pattern := range []string{k.path("missing") + "/**/*.ts", "/nowhere/at/all/*.ts", "missing/**/*.ts"} {
		k.answers("No files found matching pattern", "find", daemon.Args{"pattern": pattern})
	}
	k.within(2*time.Second, began)
}

// searchOfTheRoot shows no row of what it finds: it may be anything.
func searchOfTheRoot(k *room) {
	began := time.Now()
	r := k.ok("grep", daemon.Args{"pattern": "[a-z]", "path": "/", "limit": 5})
	k.within(10*time.Second, began)
	for row := range strings.Lines(r.Text()) {
		name, _, _ := strings.Cut(row, ":")
		if strings.HasPrefix(name, "proc/") || strings.HasPrefix(name, "sys/") {
			k.Errorf("a pseudo file system was entered: %s", name)
		}
	}
}

func hugeLine(k *room) {
	k.put("f", strings.Repeat("q", 5<<20))
	r := k.ok("read", daemon.Args{"path": "f"})
	if !strings.HasPrefix(r.Text(), "[Line 1 is 5.0MB, exceeds 50.0KB limit. Use bash: sed -n '1p' ") || len(r.Raw) > 10_000 {
		k.Errorf("%d bytes: %.300s", len(r.Raw), r.Raw)
	}
}
