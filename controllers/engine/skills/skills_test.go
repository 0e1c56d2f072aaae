package skills

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// world makes directories for one test: files are written below the root, cwd is relative to it. The home is
// root/home.
func world(t *testing.T, cwd string, files map[string]string) (root string, env engine.Env) {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	env = engine.Env{Cwd: filepath.Join(root, cwd), Home: filepath.Join(root, "home"), Environ: []string{}}
	for _, dir := range []string{env.Cwd, env.Home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for path, text := range files {
		write(t, filepath.Join(root, path), text)
	}
	return root, env
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func skillText(name string) string {
	return "---\nname: " + name + "\ndescription: What " + name + " does.\n---\n\nBody of " + name + ".\n"
}

func names(s Set) string {
	var out []string
	for _, k := range s.Skills {
		out = append(out, k.Name+":"+k.Scope)
	}
	return strings.Join(out, " ")
}

func TestDiscoverOrder(t *testing.T) {
	files := map[string]string{
		"repo/.git/HEAD":                           "ref: refs/heads/main\n",
		"repo/sub/dir/.agents/skills/g/SKILL.md":   skillText("agents-cwd"),
		"repo/sub/.agents/skills/h/SKILL.md":       skillText("agents-parent"),
		"repo/.agents/skills/i/SKILL.md":           skillText("agents-root"),
		"repo/sub/dir/.pi/skills/b/SKILL.md":       skillText("pi-cwd"),
		"repo/sub/.pi/skills/c/SKILL.md":           skillText("pi-parent"),
		"repo/.pi/skills/d/SKILL.md":               skillText("pi-root"),
		"home/.pi/agent/skills/a/SKILL.md":         skillText("agent-dir"),
		"home/.agents/skills/f/SKILL.md":           skillText("agents-home"),
		".agents/skills/outside/SKILL.md":          skillText("outside"),
		".pi/skills/outside/SKILL.md":              skillText("outside-pi"),
		"repo/sub/dir/.agents/skills/a/SKILL.md":   skillText("agent-dir"),
		"repo/sub/dir/.agents/skills/loose.md":     skillText("loose"),
		"repo/sub/dir/.agents/skills/d/nested.md":  skillText("nested"),
		"repo/sub/dir/.agents/skills/README.md":    "# no skill\n",
		"repo/sub/dir/.agents/skills/d/x/SKILL.md": skillText("deep"),
	}
	root, env := world(t, "repo/sub/dir", files)
	set := Discover(env)
	want := "agent-dir:user pi-cwd:project pi-parent:project pi-root:project agents-home:user " +
		"deep:project agents-cwd:project loose:project agents-parent:project agents-root:project"
	if got := names(set); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	wantDiagnostics := []Diagnostic{{Type: TypeCollision, Message: `name "agent-dir" collision`,
		Path: filepath.Join(env.Cwd, ".agents/skills/a/SKILL.md"),
		Collision: &Collision{ResourceType: "skill", Name: "agent-dir", WinnerPath: filepath.Join(env.Home, ".pi/agent/skills/a/SKILL.md"),
			LoserPath: filepath.Join(env.Cwd, ".agents/skills/a/SKILL.md")}}}
	if !reflect.DeepEqual(set.Diagnostics, wantDiagnostics) {
		t.Errorf("diagnostics %+v", set.Diagnostics)
	}
	if err := os.RemoveAll(filepath.Join(root, "repo/.git")); err != nil {
		t.Fatal(err)
	}
	want = "agent-dir:user pi-cwd:project agents-home:user deep:project agents-cwd:project loose:project " +
		"agents-parent:project agents-root:project outside:project"
	if got := names(Discover(env)); got != want {
		t.Errorf("without a repository\ngot  %s\nwant %s", got, want)
	}
}

// TestBelowHome has a working directory whose parents include the account's own places.
func TestBelowHome(t *testing.T) {
	_, env := world(t, "home/work", map[string]string{
		"home/.agents/skills/f/SKILL.md":   skillText("agents-home"),
		"home/.pi/agent/skills/a/SKILL.md": skillText("agent-dir"),
	})
	set := Discover(env)
	if got := names(set); got != "agent-dir:user agents-home:user" || set.Diagnostics != nil {
		t.Errorf("got %s, %v", got, set.Diagnostics)
	}
}

func TestAgentDirectoryFromEnvironment(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{
		"home/other/skills/a/SKILL.md":     skillText("other"),
		"home/other/AGENTS.md":             "other\n",
		"home/.pi/agent/skills/b/SKILL.md": skillText("usual"),
	})
	for value, want := range map[string]string{"~/other": "other:user", env.Home + "/other": "other:user", "": "usual:user"} {
		env.Environ = []string{"PI_CODING_AGENT_DIR=/nowhere", "PI_CODING_AGENT_DIR=" + value}
		if value == "" {
			env.Environ = env.Environ[1:]
		}
		if got := names(Discover(env)); got != want {
			t.Errorf("%q: got %s, want %s", value, got, want)
		}
		if files := InstructionFiles(env); (len(files) == 1) != (value != "") {
			t.Errorf("%q: instruction files %v", value, files)
		}
	}
}

// TestLinksThatLoop ends, and finds everything once.
func TestLinksThatLoop(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{
		"cwd/.pi/skills/a/b/s/SKILL.md": skillText("one"),
		"cwd/.pi/skills/z/SKILL.md":     skillText("two"),
	})
	base := filepath.Join(env.Cwd, ".pi/skills")
	for link, target := range map[string]string{"a/up": "..", "a/b/up": "../..", "self": "self", "x": "y", "y": "x", "zzz": "../../.."} {
		if err := os.Symlink(target, filepath.Join(base, link)); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan Set, 1)
	go func() { done <- Discover(env) }()
	select {
	case set := <-done:
		if got := names(set); !strings.HasPrefix(got, "one:project") || strings.Count(got, "one:") != 1 || strings.Count(got, "two:") != 1 {
			t.Errorf("got %s", got)
		}
	case <-time.After(60 * time.Second):
		t.Fatal("discovery does not end")
	}
}

// TestHugeTree stops and says so.
func TestHugeTree(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{"cwd/.pi/skills/a/SKILL.md": skillText("first")})
	for i := range maxDirs + 10 {
		if err := os.MkdirAll(filepath.Join(env.Cwd, ".pi/skills", fmt.Sprintf("d%04d", i)), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(env.Cwd, ".pi/skills/z/SKILL.md"), skillText("last"))
	set := Discover(env)
	if len(set.Diagnostics) != 1 || set.Diagnostics[0].Path != filepath.Join(env.Cwd, ".pi/skills") || names(set) != "first:project" {
		t.Errorf("got %s, %v", names(set), set.Diagnostics)
	}
}

// TestSpecialFiles has pipes where files are looked for.
func TestSpecialFiles(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{"cwd/.pi/skills/ok/SKILL.md": skillText("ok")})
	for _, name := range []string{"AGENTS.md", "CONTEXT.md", ".pi/skills/.gitignore", ".pi/skills/loose.md", ".pi/skills/p/SKILL.md"} {
		path := filepath.Join(env.Cwd, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mkfifo(path, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan bool, 1)
	go func() {
		if got := names(Discover(env)); got != "ok:project" {
			t.Errorf("got %s", got)
		}
		if files := InstructionFiles(env); len(files) != 0 {
			t.Errorf("instruction files %v", files)
		}
		done <- true
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("discovery waits for a pipe")
	}
}

func TestIgnoredSkillFileLetsTheWalkGoOn(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{
		"cwd/.pi/skills/.gitignore":      "/a/SKILL.md\n*.draft.md\n",
		"cwd/.pi/skills/a/SKILL.md":      skillText("hidden"),
		"cwd/.pi/skills/a/b/SKILL.md":    skillText("below"),
		"cwd/.pi/skills/x.draft.md":      skillText("draft"),
		"cwd/.pi/skills/k/.gitignore":    "*\n",
		"cwd/.pi/skills/k/.fdignore":     "!kept\n!kept/**\n",
		"cwd/.pi/skills/k/kept/SKILL.md": skillText("kept"),
		"cwd/.pi/skills/k/gone/SKILL.md": skillText("gone"),
	})
	if got := names(Discover(env)); got != "below:project kept:project" {
		t.Errorf("got %s", got)
	}
}

func TestUnreadableSkill(t *testing.T) {
	if os.Geteuid() == 0 {
		// The superuser reads everything; a directory in place of the file is the failure left to test.
		_, env := world(t, "cwd", map[string]string{"cwd/.pi/skills/a/SKILL.md/x": ""})
		if set := Discover(env); len(set.Skills)+len(set.Diagnostics) != 0 {
			t.Errorf("got %+v", set)
		}
		return
	}
	_, env := world(t, "cwd", map[string]string{"cwd/.pi/skills/a/SKILL.md": skillText("a")})
	path := filepath.Join(env.Cwd, ".pi/skills/a/SKILL.md")
	if err := os.Chmod(path, 0); err != nil {
		t.Fatal(err)
	}
	set := Discover(env)
	if len(set.Skills) != 0 || len(set.Diagnostics) != 1 || set.Diagnostics[0].Path != path {
		t.Errorf("got %+v", set)
	}
}

func TestBlockEscapes(t *testing.T) {
	set := Set{Skills: []Skill{{Name: `<a&"b'>`, Description: "two\nlines", FilePath: "/p&q"}}}
	want := "  <skill>\n    <name>&lt;a&amp;&quot;b&apos;&gt;</name>\n    <description>two\nlines</description>\n    <location>/p&amp;q</location>\n  </skill>\n</available_skills>"
	if got := set.Block(); !strings.HasSuffix(got, want) {
		t.Errorf("got %q", got)
	}
}

func TestPathsAndDefinitionsStopAt100(t *testing.T) {
	files := map[string]string{}
	for i := range MaxListed {
		files[fmt.Sprintf("cwd/.pi/skills/s%03d/SKILL.md", i)] = skillText(fmt.Sprintf("s%03d", i))
	}
	_, env := world(t, "cwd", files)
	for _, more := range []bool{false, true} {
		if more {
			write(t, filepath.Join(env.Cwd, ".pi/skills/z/SKILL.md"), skillText("last"))
		}
		paths, pathsMore := Paths(env)
		set := Discover(env)
		list, listMore := set.Definitions()
		if len(paths) != MaxListed || pathsMore != more || len(list) != MaxListed || listMore != more {
			t.Errorf("%d paths, more %v; %d definitions, more %v; want 100, %v", len(paths), pathsMore, len(list), listMore, more)
		}
		if got := strings.Contains(set.Block(), "<name>last</name>"); got != more {
			t.Errorf("the catalogue is not complete: %v, want %v", got, more)
		}
		answer, err := Info(env, "")
		if err != nil || strings.Contains(answer.Text, "1 more skills not shown") != more || len(answer.Skills) != MaxListed {
			t.Errorf("skill_info: %v, %d skills", err, len(answer.Skills))
		}
	}
}

func TestInfo(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{
		"cwd/.pi/skills/a/SKILL.md": "---\nname: Alpha\ndescription: |\n  First\n  second.\nlicense: MIT\nmetadata:\n  1: x\n  when: 2024-01-01\n---\n\nDo this.\n",
		"cwd/.pi/skills/b/SKILL.md": skillText("beta"),
	})
	answer, err := Info(env, "  aLPHA ")
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(env.Cwd, ".pi/skills/a")
	got, err := json.Marshal(answer.Skill)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"name":"Alpha","description":"First\nsecond.\n","path":"` + dir + `/SKILL.md","directory":"` + dir +
		`","disable_model_invocation":false,"frontmatter":{"description":"First\nsecond.\n","license":"MIT",` +
		`"metadata":{"1":"x","when":"2024-01-01"},"name":"Alpha"},"instructions":"Do this."}`
	if string(got) != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, part := range []string{"# Alpha", dir + "/SKILL.md", "\n\nDo this."} {
		if !strings.Contains(answer.Text, part) {
			t.Errorf("text lacks %q: %q", part, answer.Text)
		}
	}
	if answer, err = Info(env, ""); err != nil || answer.Skill != nil || len(answer.Skills) != 2 ||
		!strings.Contains(answer.Text, "- Alpha: First second. (") {
		t.Errorf("list: %v, %+v", err, answer)
	}
	if _, err = Info(env, "gamma"); engine.ReasonOf(err) != engine.SkillNotFound || !strings.Contains(err.Error(), "Alpha, beta") {
		t.Errorf("unknown: %v", err)
	}
	_, empty := world(t, "cwd", nil)
	if answer, err = Info(empty, ""); err != nil || len(answer.Skills) != 0 || answer.Text == "" {
		t.Errorf("none: %v, %+v", err, answer)
	}
	if _, err = Info(empty, "x"); engine.ReasonOf(err) != engine.SkillNotFound {
		t.Errorf("none, by name: %v", err)
	}
}

// TestOpenAgainReadsNothing is what the cache is for.
func TestOpenAgainReadsNothing(t *testing.T) {
	_, env := world(t, "repo/cwd", map[string]string{
		"repo/.git/HEAD":                   "ref: x\n",
		"repo/.pi/skills/a/SKILL.md":       skillText("a"),
		"repo/.pi/skills/.gitignore":       "nothing\n",
		"repo/AGENTS.md":                   "rules\n",
		"repo/cwd/CONTEXT.md":              "context\n",
		"home/.agents/skills/b/SKILL.md":   skillText("b"),
		"home/.agents/skills/c/d/SKILL.md": skillText("d"),
	})
	c := newCache(0)
	open := func() (string, []File, int) {
		before := c.reads
		set, files := c.load(places(env)), c.instructionFiles(env)
		return names(set), files, c.reads - before
	}
	skills, files, reads := open()
	if reads == 0 || len(files) != 2 {
		t.Fatalf("%d reads, files %v", reads, files)
	}
	again, sameFiles, reads := open()
	if again != skills || !reflect.DeepEqual(sameFiles, files) {
		t.Errorf("another answer: %s %v", again, sameFiles)
	}
	if reads != 0 {
		t.Errorf("%d files and directories were read again", reads)
	}
	nextTick(t)
	write(t, filepath.Join(env.Home, ".agents/skills/b/SKILL.md"), skillText("changed"))
	write(t, filepath.Join(env.Cwd, "../AGENTS.md"), "other rules\n")
	write(t, filepath.Join(env.Home, ".agents/skills/new/SKILL.md"), skillText("new"))
	if changed, files, reads := open(); !strings.Contains(changed, "changed:user") || !strings.Contains(changed, "new:user") ||
		files[0].Content != "other rules\n" || reads != 5 {
		t.Errorf("after changes: %s, %v, %d reads", changed, files, reads)
	}
	nextTick(t)
	if err := os.Remove(filepath.Join(env.Home, ".agents/skills/b/SKILL.md")); err != nil {
		t.Fatal(err)
	}
	if gone, _, _ := open(); strings.Contains(gone, "changed") {
		t.Errorf("after removal: %s", gone)
	}
}

// nextTick waits until the clock of the file system has moved on.
func nextTick(t *testing.T) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clock")
	var first time.Time
	for {
		write(t, path, "x")
		st, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if first.IsZero() {
			first = st.ModTime()
		}
		if st.ModTime().Sub(first) > time.Millisecond {
			return
		}
	}
}

// TestFreshFilesAreNotTrusted: a file that was changed a moment ago may change again without a trace.
func TestFreshFilesAreNotTrusted(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{"cwd/AGENTS.md": "rules\n"})
	c := newCache(time.Hour)
	for want := 1; want <= 2; want++ {
		if c.instructionFiles(env); c.reads != want {
			t.Errorf("%d reads, want %d", c.reads, want)
		}
	}
}

// TestOpenedByManyAtOnce shares the cache between readers while files change.
func TestOpenedByManyAtOnce(t *testing.T) {
	_, env := world(t, "cwd", map[string]string{"cwd/.pi/skills/a/SKILL.md": skillText("a"), "cwd/AGENTS.md": "rules\n"})
	c := newCache(100 * time.Millisecond)
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 50 {
				if set := c.load(places(env)); len(set.Skills) < 1 || set.Skills[0].Name != "a" {
					t.Errorf("got %+v", set)
				}
				c.instructionFiles(env)
			}
		})
	}
	for i := range 20 {
		write(t, filepath.Join(env.Cwd, fmt.Sprintf(".pi/skills/b%02d/SKILL.md", i)), skillText(fmt.Sprintf("b%02d", i)))
	}
	readers.Wait()
	if set := c.load(places(env)); len(set.Skills) != 21 {
		t.Errorf("%d skills in the end, want 21", len(set.Skills))
	}
}

func TestCacheIsBounded(t *testing.T) {
	c := newCache(-time.Hour)
	for i := range 3 * maxCached {
		c.put(cacheKey{fmt.Sprint(i), kindText}, stamp{}, "", 1)
	}
	for i := range 10 {
		c.put(cacheKey{fmt.Sprint(i), kindText}, stamp{}, "", maxCachedBytes/4)
	}
	if len(c.known) > maxCached || c.bytes > maxCachedBytes {
		t.Errorf("%d entries, %d bytes", len(c.known), c.bytes)
	}
}
