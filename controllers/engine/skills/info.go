package skills

import (
	"fmt"
	"strings"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// Definition is how a skill is shown in structured results.
type Definition struct {
	Name                   string `json:"name"`
	Description            string `json:"description"`
	Path                   string `json:"path"`
	Directory              string `json:"directory"`
	DisableModelInvocation bool   `json:"disable_model_invocation"`
}

// Detail is everything about one skill.
type Detail struct {
	Definition
	// Frontmatter holds the fields at the head of the file, as JSON can hold them.
	Frontmatter map[string]any `json:"frontmatter"`
	// Instructions is the text below it.
	Instructions string `json:"instructions"`
}

// Answer is the result of skill_info: a text, and either all skills or one.
type Answer struct {
	Text string
	// Skills is set if no name was given: at most MaxListed.
	Skills []Definition
	// Skill is set if a name was given.
	Skill *Detail
}

// Definitions lists the skills for structured results, at most MaxListed; more says whether there are others.
func (s Set) Definitions() (list []Definition, more bool) {
	list = make([]Definition, 0, min(len(s.Skills), MaxListed))
	for _, k := range s.Skills {
		if len(list) == MaxListed {
			return list, true
		}
		list = append(list, k.definition())
	}
	return list, false
}

func (k Skill) definition() Definition {
	return Definition{Name: k.Name, Description: k.Description, Path: k.FilePath, Directory: k.BaseDir,
		DisableModelInvocation: k.DisableModelInvocation}
}

// Info answers skill_info: all skills of the workspace, or the one of that name, blanks around it and case
// aside. An unknown name is SkillNotFound, naming those there are.
func Info(env engine.Env, name string) (*Answer, error) {
	set := Discover(env)
	name = strings.TrimSpace(name)
	if name == "" {
		return set.list(), nil
	}
	for _, exact := range []bool{true, false} {
		for _, k := range set.Skills {
			if k.Name == name || !exact && strings.EqualFold(k.Name, name) {
				return k.info()
			}
		}
	}
	return nil, set.notFound(name)
}

func (s Set) list() *Answer {
	list, more := s.Definitions()
	if len(list) == 0 {
		return &Answer{Text: "No skills were found for this workspace.", Skills: list}
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%d skills. Call skill_info with a name for its instructions.\n", len(s.Skills))
	for _, d := range list {
		fmt.Fprintf(&b, "\n- %s: %s (%s)", d.Name, strings.Join(strings.Fields(d.Description), " "), d.Path)
	}
	if more {
		return &Answer{Text: engine.Notices(b.String(), fmt.Sprintf("%d more skills not shown", len(s.Skills)-len(list))), Skills: list}
	}
	return &Answer{Text: b.String(), Skills: list}
}

func (s Set) notFound(name string) error {
	names := make([]string, 0, MaxListed)
	for _, k := range s.Skills[:min(len(s.Skills), MaxListed)] {
		names = append(names, k.Name)
	}
	if len(names) == 0 {
		return engine.Errorf(engine.SkillNotFound, "There is no skill %q: this workspace has none.", name)
	}
	return engine.Errorf(engine.SkillNotFound, "There is no skill %q. Available: %s.", name, strings.Join(names, ", "))
}

// info reads the skill's file, from memory if it did not change.
func (k Skill) info() (*Answer, error) {
	doc, _, err := file(shared, kindSkill, k.FilePath, parseDocument)
	if err != nil {
		return nil, engine.SystemError("read", k.FilePath, err)
	}
	d := &Detail{Definition: k.definition(), Frontmatter: doc.fields, Instructions: cut(doc.body, k.FilePath)}
	if d.Frontmatter == nil {
		d.Frontmatter = map[string]any{}
	}
	text := fmt.Sprintf("# %s\n\nLocation: %s\nRelative paths in it refer to: %s\n\n%s", k.Name, k.FilePath, k.BaseDir, d.Instructions)
	return &Answer{Text: text, Skill: d}, nil
}
