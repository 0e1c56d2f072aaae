package skills

import (
	"encoding/json"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
)

// better are quirks with what binds instead.
var better = map[string]string{
	"skills-017-gitignore-prefix": `{"skills":[],"diagnostics":[],"block":""}`, // a bare name counts at any depth, as in git
	"skills-084-bridge-exact-100": `{"skills_truncated":false}`,                // exactly 100 are all of them
}

// result is what a vector may expect; a nil field is not compared.
type result struct {
	Skills      json.RawMessage `json:"skills"`
	Diagnostics *[]Diagnostic   `json:"diagnostics"`
	Block       *string         `json:"block"`
	Truncated   *bool           `json:"skills_truncated"`
}

func TestGolden(t *testing.T) {
	for _, c := range enginetest.Load(t, "skills") {
		t.Run(c.ID, func(t *testing.T) {
			w := c.Setup(t)
			var want result
			decode(t, w.Expand(string(c.Expected.Result)), &want)
			if text, ok := better[c.ID]; ok {
				decode(t, text, &want)
			} else if c.Quirk {
				t.Errorf("a quirk without its better value: %+v", c.Better)
			}
			env := engine.Env{Cwd: c.WorkDir(w), Home: w.Home, ConfigHome: filepath.Join(w.Home, ".config"), Environ: []string{}}
			got := call(t, env, c, c.Arguments(t, w))
			compare(t, c.Compare == "error-only", got, want)
		})
	}
}

// call runs the function that a vector names. The ones of the reference that we do not have are put together
// from the parts of ours.
func call(t *testing.T, env engine.Env, c enginetest.Case, args map[string]any) result {
	t.Helper()
	switch c.Fn {
	case "orientation":
		paths, more := Paths(env)
		return result{Skills: encode(t, paths), Truncated: &more}
	case "formatSkillsForPrompt":
		var set Set
		decode(t, string(encode(t, args["skills"])), &set.Skills)
		block := set.Block()
		return result{Block: &block}
	case "loadSkillsFromDir":
		var set Set
		shared.loadPlace(&set, Place{Path: args["dir"].(string), Scope: ScopeTemporary})
		return answer(t, set)
	case "loadSkills":
		return answer(t, Load(referencePlaces(t, env, args)...))
	case "discover":
		return answer(t, Load(agentPlaces(env)...))
	}
	t.Fatalf("unknown function %s", c.Fn)
	return result{}
}

// referencePlaces are those of the reference's loadSkills.
func referencePlaces(t *testing.T, env engine.Env, args map[string]any) []Place {
	t.Helper()
	var list []Place
	if defaults, given := args["includeDefaults"].(bool); defaults || !given {
		list = append(list, Place{Path: filepath.Join(agentDir(env), "skills"), Scope: ScopeUser},
			Place{Path: filepath.Join(env.Cwd, ".pi", "skills"), Scope: ScopeProject})
	}
	paths, _ := args["skillPaths"].([]any)
	for _, p := range paths {
		place, err := Explicit(env, p.(string))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, place)
	}
	return list
}

// agentPlaces are those of the reference agent's own discovery: the project comes first, and in .agents/skills
// it is the nested Markdown files that count.
func agentPlaces(env engine.Env) []Place {
	_, agents := projectPlaces(env)
	list := []Place{{Path: filepath.Join(env.Cwd, ".pi", "skills"), Scope: ScopeProject}}
	for _, p := range agents {
		p.Loose = LooseBelow
		list = append(list, p)
	}
	return append(list, Place{Path: filepath.Join(agentDir(env), "skills"), Scope: ScopeUser},
		Place{Path: filepath.Join(env.Home, ".agents", "skills"), Scope: ScopeUser, Loose: LooseBelow})
}

func answer(t *testing.T, s Set) result {
	t.Helper()
	block := s.Block()
	return result{Skills: encode(t, append([]Skill{}, s.Skills...)), Diagnostics: &s.Diagnostics, Block: &block}
}

func compare(t *testing.T, freeWording bool, got, want result) {
	t.Helper()
	if want.Skills != nil && !jsonEqual(t, got.Skills, want.Skills) {
		t.Errorf("skills\n got %s\nwant %s", got.Skills, want.Skills)
	}
	if want.Block != nil && (got.Block == nil || *got.Block != *want.Block) {
		t.Errorf("block\n got %q\nwant %q", *got.Block, *want.Block)
	}
	if want.Truncated != nil && (got.Truncated == nil || *got.Truncated != *want.Truncated) {
		t.Errorf("truncated is not %v", *want.Truncated)
	}
	if want.Diagnostics == nil {
		return
	}
	if freeWording { // the same files must be warned about
		for _, list := range [][]Diagnostic{*got.Diagnostics, *want.Diagnostics} {
			for i := range list {
				if list[i].Message == "" {
					t.Error("a diagnostic without words")
				}
				list[i].Message = ""
			}
		}
	}
	if !slices.EqualFunc(*got.Diagnostics, *want.Diagnostics, func(a, b Diagnostic) bool { return reflect.DeepEqual(a, b) }) {
		t.Errorf("diagnostics\n got %s\nwant %s", encode(t, got.Diagnostics), encode(t, want.Diagnostics))
	}
}

func jsonEqual(t *testing.T, a, b json.RawMessage) bool {
	t.Helper()
	var x, y any
	decode(t, string(a), &x)
	decode(t, string(b), &y)
	return reflect.DeepEqual(x, y)
}

func encode(t *testing.T, v any) json.RawMessage {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func decode(t *testing.T, text string, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), v); err != nil {
		t.Fatal(err)
	}
}
