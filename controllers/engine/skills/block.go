package skills

import "strings"

// The lines before the catalogue; clients know them.
const blockHead = "\n\nThe following skills provide specialized instructions for specific tasks.\n" +
	"Use the read tool to load a skill's file when the task matches its description.\n" +
	"When a skill file references a relative path, resolve it against the skill directory (parent of SKILL.md / dirname of the path) and use that absolute path in tool commands.\n\n"

var escapeXML = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;", "'", "&apos;")

// Block is the catalogue for the assistant: every skill that it may use by itself. It begins with a blank line
// and is empty if there is none.
func (s Set) Block() string {
	var b strings.Builder
	for _, k := range s.Skills {
		if k.DisableModelInvocation {
			continue
		}
		b.WriteString("  <skill>\n    <name>" + escapeXML.Replace(k.Name) +
			"</name>\n    <description>" + escapeXML.Replace(k.Description) +
			"</description>\n    <location>" + escapeXML.Replace(k.FilePath) + "</location>\n  </skill>\n")
	}
	if b.Len() == 0 {
		return ""
	}
	return blockHead + "<available_skills>\n" + b.String() + "</available_skills>"
}
