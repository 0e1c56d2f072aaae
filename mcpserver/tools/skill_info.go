package tools

var skillInfo = Definition{
	Name:        "skill_info",
	Title:       "Show skills",
	Description: markdown("skill_info"),
	Input: arguments(
		workspaceArgument(),
		optional("name", text(0, "Skill to show, any case; without it all are listed")),
	),
	Output: result(
		optional("skills", Schema{Type: "array", Description: "Without name: name, description, path of each", Items: &Schema{Type: "object"}}),
		returns("directory", "string", "Base for its relative paths"),
		returns("instructions", "string", "Its body"),
	),
	Returns: []string{"workspace_id", "cwd"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
}
