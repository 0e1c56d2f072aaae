package tools

var find = Definition{
	Name:        "find",
	Title:       "Find files by name",
	Description: markdown("find"),
	Input: arguments(
		workspaceArgument(),
		required("pattern", text(0, "Glob, e.g. *.go or src/**/*_test.go")),
		optional("path", text(0, "Directory to search; default the workspace directory")),
		optional("limit", integer(1, 2000, "Maximum paths").with(1000)),
	),
	Output: result(
		returns("details", "", "Limits reached, or null"),
	),
	Returns: []string{"workspace_id", "cwd", "details"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
}
