package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// MaxListed is how many skills a list holds. The catalogue of Block holds all.
const MaxListed = 100

// Place is where skills are looked for.
type Place struct {
	// Path is a directory, or one Markdown file; absolute.
	Path string
	// Scope is given to the skills found.
	Scope string
	// Loose says which Markdown files of a directory count.
	Loose Loose
	// Explicit is set if somebody named the path: that it is missing is then worth a warning.
	Explicit bool
}

// Discover finds the skills of a workspace: the account's agent directory, .pi/skills of the working directory
// and its parents, ~/.agents/skills, .agents/skills of the working directory and its parents. Parents count,
// nearest first, up to the repository's root; outside of a repository all parents count for .agents/skills and
// none for .pi/skills.
func Discover(env engine.Env) Set { return Load(places(env)...) }

// Load finds the skills of some places. The first of a name wins; the same file reached twice is one skill.
func Load(places ...Place) Set { return shared.load(places) }

func (c *cache) load(places []Place) Set {
	var all Set
	for _, p := range places {
		c.loadPlace(&all, p)
	}
	return all.withoutRepeats()
}

// loadPlace adds everything that one place has.
func (c *cache) loadPlace(set *Set, p Place) {
	st, err := os.Stat(p.Path)
	switch {
	case err != nil:
		if p.Explicit {
			set.warn(p.Path, "skill path does not exist")
		}
	case st.IsDir():
		w := &walker{cache: c, set: set, scope: p.Scope, loose: p.Loose, entered: map[fileID]bool{}}
		w.walk(p.Path, nil, true)
		if len(w.entered) >= maxDirs {
			set.warn(p.Path, "only the first %d directories were searched for skills", maxDirs)
		}
	case st.Mode().IsRegular() && strings.HasSuffix(p.Path, ".md"):
		set.addFile(c, p.Path, p.Scope, false)
	case p.Explicit:
		set.warn(p.Path, "skill path is not a markdown file")
	}
}

// withoutRepeats keeps the first skill of each file and of each name. Collisions come after all warnings.
func (s Set) withoutRepeats() Set {
	out := Set{Diagnostics: s.Diagnostics}
	files, names := map[fileID]bool{}, map[string]string{}
	var collisions []Diagnostic
	for _, k := range s.Skills {
		if files[k.id] {
			continue
		}
		files[k.id] = true
		if winner, taken := names[k.Name]; taken {
			collisions = append(collisions, Diagnostic{Type: TypeCollision, Path: k.FilePath,
				Message:   fmt.Sprintf("name %q collision", k.Name),
				Collision: &Collision{ResourceType: "skill", Name: k.Name, WinnerPath: winner, LoserPath: k.FilePath}})
			continue
		}
		names[k.Name] = k.FilePath
		out.Skills = append(out.Skills, k)
	}
	out.Diagnostics = append(out.Diagnostics, collisions...)
	return out
}

// places lists where Discover looks, in order of precedence.
func places(env engine.Env) []Place {
	pi, agents := projectPlaces(env)
	out := []Place{{Path: filepath.Join(agentDir(env), "skills"), Scope: ScopeUser}}
	out = append(out, pi...)
	out = append(out, Place{Path: filepath.Join(env.Home, ".agents", "skills"), Scope: ScopeUser})
	return append(out, agents...)
}

// projectPlaces lists the places of the working directory and its parents, nearest first, without the
// account's own.
func projectPlaces(env engine.Env) (pi, agents []Place) {
	repo := repositoryRoot(env.Cwd)
	own := map[string]bool{
		filepath.Join(agentDir(env), "skills"):       true,
		filepath.Join(env.Home, ".agents", "skills"): true,
	}
	for dir := env.Cwd; ; dir = filepath.Dir(dir) {
		if p := filepath.Join(dir, ".pi", "skills"); !own[p] && (repo != "" || dir == env.Cwd) {
			pi = append(pi, Place{Path: p, Scope: ScopeProject})
		}
		if p := filepath.Join(dir, ".agents", "skills"); !own[p] {
			agents = append(agents, Place{Path: p, Scope: ScopeProject})
		}
		if dir == repo || dir == filepath.Dir(dir) {
			return pi, agents
		}
	}
}

// Explicit makes a place of a path that somebody named, trimmed and resolved as all paths are. Its scope is
// that of the place it lies in.
func Explicit(env engine.Env, arg string) (Place, error) {
	path, err := env.ResolvePath(strings.TrimSpace(arg))
	if err != nil {
		return Place{}, err
	}
	p := Place{Path: path, Scope: ScopeTemporary, Explicit: true}
	switch {
	case within(path, filepath.Join(agentDir(env), "skills")):
		p.Scope = ScopeUser
	case within(path, filepath.Join(env.Cwd, ".pi", "skills")):
		p.Scope = ScopeProject
	}
	return p, nil
}

// within says whether a clean path is dir or lies below it.
func within(path, dir string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")
}

// agentDir is the account's agent directory: $PI_CODING_AGENT_DIR, else ~/.pi/agent.
func agentDir(env engine.Env) string {
	environ := env.Environ
	if environ == nil {
		environ = os.Environ()
	}
	for i := len(environ) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(environ[i], "PI_CODING_AGENT_DIR="); ok && v != "" {
			if path, err := (engine.Env{Cwd: env.Home, Home: env.Home}).ResolvePath(v); err == nil {
				return path
			}
		}
	}
	return filepath.Join(env.Home, ".pi", "agent")
}

// repositoryRoot is the nearest directory from dir upwards that has an entry .git, or the empty string.
func repositoryRoot(dir string) string {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return ""
		}
		dir = parent
	}
}

// Paths lists the SKILL.md files one level below the places of a workspace without reading them, at most
// MaxListed; more says whether there are others. The account's ~/.agents/skills and agent directory come
// first, then .agents/skills and .pi/skills of the working directory, then those of its parents.
func Paths(env engine.Env) (paths []string, more bool) {
	for _, base := range pathBases(env) {
		entries, _, err := shared.dir(base)
		if err != nil {
			continue
		}
		for _, e := range entries {
			path := filepath.Join(base, e.Name(), "SKILL.md")
			if st, err := os.Stat(path); err != nil || !st.Mode().IsRegular() {
				continue
			}
			if len(paths) == MaxListed {
				return paths, true
			}
			paths = append(paths, path)
		}
	}
	return paths, false
}

func pathBases(env engine.Env) []string {
	pi, agents := projectPlaces(env)
	bases := []string{filepath.Join(env.Home, ".agents", "skills"), filepath.Join(agentDir(env), "skills")}
	for i := range max(len(pi), len(agents)) {
		if i < len(agents) {
			bases = append(bases, agents[i].Path)
		}
		if i < len(pi) {
			bases = append(bases, pi[i].Path)
		}
	}
	return bases
}
