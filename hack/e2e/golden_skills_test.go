package e2e

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine/enginetest"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestGoldenSkills runs the vectors of skill discovery through MCP: the directory that a vector loads becomes the
// project's own, and workspace_open and skill_info tell what was found. What only the function shows (diagnostics,
// scopes, places that no workspace has) is left to the engine's own test.
func TestGoldenSkills(t *testing.T) {
	for _, c := range enginetest.Load(t, "skills") {
		if c.Fn != "loadSkillsFromDir" && c.ID != "skills-060-collision" && c.ID != "skills-061-same-file-twice" {
			continue
		}
		t.Run(c.ID, func(t *testing.T) { runSkills(t, c) })
	}
}

// looser are the vectors whose better value binds.
var looser = map[string]string{
	"skills-017-gitignore-prefix": `{"skills":[],"block":""}`, // a bare name counts at any depth, as in git
}

// apart are the vectors that the place or the whole discovery changes.
var apart = map[string]func(want *skillList){
	// A loose file without a name is called after its directory, which is "skills" here.
	"skills-010-root-md-name": func(want *skillList) {
		want.Skills[0].Name = "skills"
		want.Block = strings.ReplaceAll(want.Block, "<name>s</name>", "<name>skills</name>")
	},
	// The bare function does not look for collisions; discovery keeps the first of a name.
	"skills-058-same-name-one-dir": func(want *skillList) {
		second := want.Skills[1]
		want.Skills = want.Skills[:1]
		at := strings.Index(want.Block, "  <skill>\n    <name>"+second.Name+"</name>\n    <description>"+second.Description)
		want.Block = want.Block[:at] + "</available_skills>"
	},
}

type skillList struct {
	Skills []struct {
		Name        string `json:"name"`
		Description string `json:"description"`
		FilePath    string `json:"filePath"`
		Hidden      bool   `json:"disableModelInvocation"`
	} `json:"skills"`
	Block string `json:"block"`
}

func runSkills(t *testing.T, c enginetest.Case) {
	w := c.Setup(t)
	var want skillList
	text := w.Expand(string(c.Expected.Result))
	if better, ok := looser[c.ID]; ok {
		text = better
	}
	if err := json.Unmarshal([]byte(text), &want); err != nil {
		t.Fatal(err)
	}
	if change, ok := apart[c.ID]; ok {
		change(&want)
	}
	place := filepath.Join(c.WorkDir(w), ".pi", "skills")
	dir, _ := c.Arguments(t, w)["dir"].(string)
	if dir != "" {
		if err := os.MkdirAll(filepath.Dir(place), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(dir, place); err != nil {
			t.Fatal(err)
		}
	}
	d := daemon.Start(t, daemon.Options{Home: w.Home, Env: serverEnv(c, w)})
	opened := d.Client().OK(t, "workspace_open", daemon.Args{"cwd": c.WorkDir(w)})
	asVector := func(s string) string {
		if dir == "" {
			return s
		}
		return strings.ReplaceAll(s, place, dir)
	}
	if got, wanted := asVector(opened.String("skills_prompt")), strings.TrimLeft(want.Block, "\n"); got != wanted {
		t.Errorf("block\n got %q\nwant %q", got, wanted)
	}
	info := d.Client().OK(t, "skill_info", daemon.Args{"workspace_id": opened.String("workspace_id")})
	list, _ := info.Structured["skills"].([]any)
	if len(list) != len(want.Skills) {
		t.Fatalf("%d skills, want %d: %v", len(list), len(want.Skills), list)
	}
	for i, s := range want.Skills {
		got := list[i].(map[string]any)
		if got["name"] != s.Name || got["description"] != s.Description || asVector(got["path"].(string)) != s.FilePath || got["disable_model_invocation"] != s.Hidden {
			t.Errorf("skill %d\n got %v\nwant %+v", i, got, s)
		}
	}
}
