package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// searchTrees makes what the benchmark searches: a generated tree, a copy of the largest source tree of the
// module cache, and an empty directory, which shows the fixed cost of a call and of a process. What this
// machine does not have is named.
func searchTrees(ctx context.Context, dir string, files int) (trees []tree, missing []string, err error) {
	generated := tree{Name: "generated", Dir: filepath.Join(dir, "generated"), queries: generatedQueries}
	if err := generate(generated.Dir, files); err != nil {
		return nil, nil, fmt.Errorf("generate a tree: %w", err)
	}
	module := tree{Name: "module", Dir: filepath.Join(dir, "module"), queries: moduleQueries}
	name, err := copyLargestModule(ctx, module.Dir)
	if err != nil {
		missing = append(missing, fmt.Sprintf("a source tree in the module cache: %v", err))
	}
	module.Name = name
	empty := tree{Name: "empty", Dir: filepath.Join(dir, "empty"), queries: emptyQueries}
	for _, t := range []tree{generated, module, empty} {
		if t.Name == "" {
			continue
		}
		if err := asRepository(t.Dir); err != nil {
			return nil, nil, err
		}
		if err := t.measure(); err != nil {
			return nil, nil, err
		}
		trees = append(trees, t)
	}
	return trees, missing, nil
}

// asRepository makes the directory count as a Git repository: outside one rg and old versions of fd take no
// notice of .gitignore, and we do.
func asRepository(dir string) error {
	for _, sub := range []string{"objects", "refs"} {
		if err := os.MkdirAll(filepath.Join(dir, ".git", sub), 0o755); err != nil {
			return fmt.Errorf("make a repository: %w", err)
		}
	}
	return os.WriteFile(filepath.Join(dir, ".git", "HEAD"), []byte("ref: refs/heads/main\n"), 0o644)
}

func (t *tree) measure() error {
	var size int64
	err := filepath.WalkDir(t.Dir, func(_ string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		t.Files++
		info, err := e.Info()
		if err == nil {
			size += info.Size()
		}
		return err
	})
	t.MiB = size >> 20
	return err
}

var generatedQueries = []query{
	{Name: "literal", Tool: "grep", Pattern: "resolveSnapshot"},
	{Name: "literal flag", Tool: "grep", Pattern: "ledger.Open(ctx, ", Literal: true},
	{Name: "ignore case", Tool: "grep", Pattern: "RESOLVESNAPSHOT", Fold: true},
	{Name: "alternation", Tool: "grep", Pattern: "foldReceipt|sealLedger|dropLease"},
	{Name: "glob", Tool: "grep", Pattern: "resolveSnapshot", Glob: "*.go"},
	{Name: "anchored", Tool: "grep", Pattern: `^func ac(Zin|Yor)[a-k]\w*\(`},
	{Name: "classes, literal end", Tool: "grep", Pattern: `\w+_[0-9]{3}Snapshot\b`},
	{Name: "classes only", Tool: "grep", Pattern: `[A-Z]{6}_[0-9]{5}`},
	{Name: "long words", Tool: "grep", Pattern: `\b\w{40,}\b`},
	{Name: "no match", Tool: "grep", Pattern: "zzqqxx_absent"},
	{Name: "name glob", Tool: "find", Pattern: "*99.go"},
	{Name: "path glob", Tool: "find", Pattern: "store/**/*1?.py"},
	{Name: "exact name", Tool: "find", Pattern: "main_4242.go"},
	{Name: "no match", Tool: "find", Pattern: "zzqqxx_absent"},
}

// moduleQueries fit Go source of any kind: what matches too much in some tree is marked as limited.
var moduleQueries = []query{
	{Name: "literal", Tool: "grep", Pattern: "TO" + "DO"}, // in two parts: our own tree holds no such mark
	{Name: "literal flag", Tool: "grep", Pattern: "case <-ctx.Done():", Literal: true},
	{Name: "ignore case", Tool: "grep", Pattern: "deadlineexceeded", Fold: true},
	{Name: "alternation", Tool: "grep", Pattern: "DeadlineExceeded|math/bits|TooManyRequests"},
	{Name: "glob", Tool: "grep", Pattern: "License", Glob: "*.md"},
	{Name: "anchored", Tool: "grep", Pattern: `^type \w+Policy struct`},
	{Name: "classes, literal end", Tool: "grep", Pattern: `\w+[a-z]Condition\{`},
	{Name: "classes only", Tool: "grep", Pattern: `[A-Z]{6}_[0-9]{5}`},
	{Name: "long words", Tool: "grep", Pattern: `\b\w{70,}\b`},
	{Name: "no match", Tool: "grep", Pattern: "zzqqxx_absent"},
	{Name: "name glob", Tool: "find", Pattern: "*_test.go"},
	{Name: "path glob", Tool: "find", Pattern: "v1/**/doc.go"},
	{Name: "no match", Tool: "find", Pattern: "zzqqxx_absent"},
}

var emptyQueries = []query{
	{Name: "fixed cost", Tool: "grep", Pattern: "zzqqxx_absent"},
	{Name: "fixed cost", Tool: "find", Pattern: "zzqqxx_absent"},
}

var (
	syllables = strings.Fields("ac bo cel dor en fa gri hol in jas kem lor min nor op pel qui ras sol tam ur ver wes yor zin")
	folders   = strings.Fields("api store handlers internal client server codec queue render worker shared")
	kinds     = []string{".go", ".go", ".go", ".py", ".ts", ".md", ".json"}
	needles   = []string{"resolveSnapshot(ctx, state)", "ledger.Open(ctx, path)", "old_123Snapshot", "LEDGER_10042"}
	rare      = []string{"foldReceipt(entry)", "sealLedger(last)", "dropLease(id)"}
)

// generate makes so many files in nested directories, the same ones each time: source text of sizes from a
// few hundred bytes to some MiB, some of it in ignored directories, some binary.
func generate(dir string, files int) error {
	g := &generator{r: rand.New(rand.NewPCG(1, 2))}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, ".gitignore"), []byte("build/\n*.log\n!keep.log\n/vendor\n"), 0o644); err != nil {
		return err
	}
	for made := 0; made < files; {
		sub := filepath.Join(dir, g.path())
		if err := os.MkdirAll(sub, 0o755); err != nil {
			return err
		}
		if g.r.IntN(10) == 0 {
			if err := os.WriteFile(filepath.Join(sub, ".gitignore"), []byte("*.tmp\n!wanted.tmp\ngen_*/\n"), 0o644); err != nil {
				return err
			}
		}
		for n := 4 + g.r.IntN(40); n > 0 && made < files; n-- {
			name, content := g.file(made)
			if err := os.WriteFile(filepath.Join(sub, name), content, 0o644); err != nil {
				return err
			}
			made++
		}
	}
	return nil
}

type generator struct {
	r   *rand.Rand
	dir int
}

// path is a new directory, one in twelve of them ignored.
func (g *generator) path() string {
	parts := []string{folders[g.r.IntN(len(folders))]}
	for range g.r.IntN(4) {
		parts = append(parts, folders[g.r.IntN(len(folders))])
	}
	if g.r.IntN(12) == 0 {
		parts = append(parts, "build")
	}
	g.dir++
	return filepath.Join(append(parts, fmt.Sprintf("part%d", g.dir))...)
}

func (g *generator) file(n int) (name string, content []byte) {
	size := 200 + int(g.r.ExpFloat64()*3000)
	switch {
	case n%4000 == 17:
		size = 2 << 20
	case n%100 == 3:
		size *= 30
	}
	if n%97 == 5 {
		content = make([]byte, size)
		for i := range content {
			content[i] = byte(g.r.Uint32())
		}
		content[0], content[1] = 0x89, 0
		return fmt.Sprintf("image_%d.png", n), content
	}
	if n%60 == 8 {
		return fmt.Sprintf("run_%d.log", n), g.text(size)
	}
	return fmt.Sprintf("main_%d%s", n, kinds[n%len(kinds)]), g.text(size)
}

// text is lines of words; about one line in 1,000 holds a needle.
func (g *generator) text(size int) []byte {
	var b bytes.Buffer
	for b.Len() < size {
		switch g.r.IntN(12) {
		case 0:
			fmt.Fprintf(&b, "func %s(ctx context.Context, %s int) error {\n", g.word(3), g.word(2))
		case 1:
			b.WriteString("}\n\n")
		default:
			b.WriteByte('\t')
			for range 3 + g.r.IntN(6) {
				b.WriteString(g.word(1 + g.r.IntN(3)))
				b.WriteString([]string{" ", " ", ", ", ".", " = ", "("}[g.r.IntN(6)])
			}
			b.WriteByte('\n')
		}
		if n := g.r.IntN(20_000); n < 16 {
			fmt.Fprintf(&b, "\treturn %s\n", needles[n%len(needles)])
		} else if n < 20 {
			fmt.Fprintf(&b, "\treturn %s\n", rare[n%len(rare)])
		}
	}
	return b.Bytes()
}

func (g *generator) word(parts int) string {
	var b strings.Builder
	for i := range parts {
		s := syllables[g.r.IntN(len(syllables))]
		if i == 1 {
			s = strings.ToUpper(s[:1]) + s[1:]
		}
		b.WriteString(s)
	}
	return b.String()
}

// copyLargestModule copies the module with the most files out of the module cache and returns its name.
func copyLargestModule(ctx context.Context, to string) (string, error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOMODCACHE").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMODCACHE: %w", err)
	}
	from, err := largestModule(strings.TrimSpace(string(out)))
	if err != nil {
		return "", err
	}
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		return "", fmt.Errorf("copy %s: %w", from, err)
	}
	return filepath.Base(from), nil
}

// largestModule is the directory of the module with the most files.
func largestModule(cache string) (string, error) {
	counts := map[string]int{}
	module := ""
	err := filepath.WalkDir(cache, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case path == filepath.Join(cache, "cache"):
			return filepath.SkipDir
		case e.IsDir() && strings.Contains(e.Name(), "@") && (module == "" || !strings.HasPrefix(path, module+"/")):
			module = path
		case e.Type().IsRegular() && module != "" && strings.HasPrefix(path, module+"/"):
			counts[module]++
		}
		return nil
	})
	if err != nil {
		return "", fmt.Errorf("read the module cache: %w", err)
	}
	names := make([]string, 0, len(counts))
	for name := range counts {
		names = append(names, name)
	}
	if len(names) == 0 {
		return "", errors.New("it holds none")
	}
	return slices.MaxFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(counts[a], counts[b]), strings.Compare(a, b))
	}), nil
}
