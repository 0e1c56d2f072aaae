package tools

var workspaceList = Definition{
	Name:        "workspace_list",
	Title:       "List projects and workspaces",
	Description: markdown("workspace_list"),
	Input:       arguments(),
	Output: result(
		optional("projects", Schema{Type: "array", Description: "With threads and runs", Items: &Schema{Type: "object"}}),
		optional("handles", Schema{Type: "array", Description: "Open workspaces and their calls", Items: &Schema{Type: "object"}}),
	),
	Returns: []string{"projects", "handles"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
}
