package tools

var workspaceList = Definition{
	Name:        "workspace_list",
	Title:       "List projects and workspaces",
	Description: markdown("workspace_list"),
	Input:       arguments(optional("cursor", text(0, "next_cursor of an earlier answer; default the first page"))),
	Output: result(
		optional("projects", Schema{Type: "array", Description: "With threads and runs", Items: &Schema{Type: "object"}}),
		optional("handles", Schema{Type: "array", Description: "Open workspaces and their calls", Items: &Schema{Type: "object"}}),
		returns("next_cursor", "string", "Absent on the last page"),
	),
	Returns: []string{"projects", "handles"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
}
