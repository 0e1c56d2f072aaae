package tools

var ls = Definition{
	Name:        "ls",
	Title:       "List a directory",
	Description: markdown("ls"),
	Input: arguments(
		workspaceArgument(),
		optional("path", text(0, "Directory; default the workspace directory")),
		optional("limit", integer(1, 2000, "Maximum entries").with(500)),
	),
	Output: result(
		returns("details", "", "Limits reached, or null"),
	),
	Returns: []string{"workspace_id", "cwd", "details"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
}
