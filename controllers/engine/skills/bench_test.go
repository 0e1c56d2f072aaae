package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// BenchmarkOpenAgain discovers 100 skills and a few instruction files whose stamps did not change.
func BenchmarkOpenAgain(b *testing.B) {
	root := b.TempDir()
	env := engine.Env{Cwd: filepath.Join(root, "a/b/c"), Home: filepath.Join(root, "home"), Environ: []string{}}
	put := func(path, text string) {
		path = filepath.Join(root, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			b.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			b.Fatal(err)
		}
	}
	for i := range 100 {
		put(fmt.Sprintf("home/.agents/skills/s%02d/SKILL.md", i), skillText(fmt.Sprintf("s%02d", i)))
	}
	for _, dir := range []string{"a", "a/b", "a/b/c"} {
		put(dir+"/AGENTS.md", "rules\n")
	}
	c := newCache(0)
	b.ReportAllocs()
	for b.Loop() {
		if set := c.load(places(env)); len(set.Skills) != 100 {
			b.Fatal("not all skills were found")
		}
		c.instructionFiles(env)
	}
	if c.reads > 400 {
		b.Errorf("%d reads", c.reads)
	}
}
