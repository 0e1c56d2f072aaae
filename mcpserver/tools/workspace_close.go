package tools

var workspaceClose = Definition{
	Name:        "workspace_close",
	Title:       "Close a workspace",
	Description: markdown("workspace_close"),
	Input:       arguments(workspaceArgument()),
	Output: result(
		returns("cwd", "string", "Its directory, when it was open"),
		returns("closed", "boolean", "True"),
	),
	Returns: []string{"workspace_id", "closed"},
	Hints:   Hints{Destructive: true, Idempotent: true},
}
