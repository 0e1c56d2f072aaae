package skills

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// Limits on what a skill says about itself, in UTF-16 code units.
const (
	maxName        = 64
	maxDescription = 1024
)

// Where a skill was found.
const (
	// ScopeUser is a place of the account.
	ScopeUser = "user"
	// ScopeProject is a place of the working directory or one of its parents.
	ScopeProject = "project"
	// ScopeTemporary is a path that was named for once.
	ScopeTemporary = "temporary"
)

// Skill is one skill that was loaded.
type Skill struct {
	Name        string `json:"name"`
	Description string `json:"description"`
	// FilePath is the Markdown file, BaseDir the directory that its relative paths refer to; both absolute.
	FilePath string `json:"filePath"`
	BaseDir  string `json:"baseDir"`
	// DisableModelInvocation keeps the skill out of the catalogue; the user may still name it.
	DisableModelInvocation bool `json:"disableModelInvocation"`
	// Scope is ScopeUser, ScopeProject or ScopeTemporary.
	Scope string `json:"scope"`

	id fileID // the file, whatever path led to it
}

// The types of a Diagnostic.
const (
	TypeWarning   = "warning"
	TypeCollision = "collision"
)

// Diagnostic is something about a skill that its author should know.
type Diagnostic struct {
	// Type is TypeWarning or TypeCollision.
	Type      string     `json:"type"`
	Message   string     `json:"message"`
	Path      string     `json:"path"`
	Collision *Collision `json:"collision,omitempty"`
}

// Collision names two skills of one name: the one that counts and the one that was left out.
type Collision struct {
	ResourceType string `json:"resourceType"`
	Name         string `json:"name"`
	WinnerPath   string `json:"winnerPath"`
	LoserPath    string `json:"loserPath"`
}

// Set is the outcome of a discovery, in the order of precedence.
type Set struct {
	Skills      []Skill
	Diagnostics []Diagnostic
}

func (s *Set) warn(path, format string, args ...any) {
	s.Diagnostics = append(s.Diagnostics, Diagnostic{Type: TypeWarning, Message: fmt.Sprintf(format, args...), Path: path})
}

// addFile loads one Markdown file. A loose file, not called SKILL.md, is a skill only if it says so, and is
// passed over in silence otherwise.
func (s *Set) addFile(c *cache, path, scope string, loose bool) {
	doc, id, err := file(c, kindSkill, path, parseDocument)
	if err == nil {
		err = doc.err
	} else {
		err = engine.SystemError("read", path, err)
	}
	description, _ := doc.fields["description"].(string)
	blank := strings.TrimSpace(description) == ""
	if loose && (err != nil || blank) {
		return
	}
	if err != nil {
		s.warn(path, "%s", err)
		return
	}
	skill := Skill{Description: description, FilePath: path, BaseDir: filepath.Dir(path), Scope: scope, id: id}
	if skill.Name, _ = doc.fields["name"].(string); skill.Name == "" {
		skill.Name = filepath.Base(skill.BaseDir)
	}
	skill.DisableModelInvocation, _ = doc.fields["disable-model-invocation"].(bool)
	s.check(skill, blank)
	if !blank {
		s.Skills = append(s.Skills, skill)
	}
}

var validName = regexp.MustCompile(`^[a-z0-9-]+$`)

// check warns about a description or a name that breaks the rules.
func (s *Set) check(k Skill, blank bool) {
	if n := units(k.Description); blank {
		s.warn(k.FilePath, "description is required")
	} else if n > maxDescription {
		s.warn(k.FilePath, "description exceeds %d characters (%d)", maxDescription, n)
	}
	if n := units(k.Name); n > maxName {
		s.warn(k.FilePath, "name exceeds %d characters (%d)", maxName, n)
	}
	if !validName.MatchString(k.Name) {
		s.warn(k.FilePath, "name contains invalid characters (must be lowercase a-z, 0-9, hyphens only)")
	}
	if strings.HasPrefix(k.Name, "-") || strings.HasSuffix(k.Name, "-") {
		s.warn(k.FilePath, "name must not start or end with a hyphen")
	}
	if strings.Contains(k.Name, "--") {
		s.warn(k.FilePath, "name must not contain consecutive hyphens")
	}
}

// units counts UTF-16 code units.
func units(s string) int {
	n := utf8.RuneCountInString(s)
	for i := 0; i < len(s); i++ {
		if s[i] >= 0xF0 {
			n++ // a character of four bytes takes two units
		}
	}
	return n
}
