package tools

var grep = Definition{
	Name:        "grep",
	Title:       "Search file contents",
	Description: markdown("grep"),
	Input: arguments(
		workspaceArgument(),
		required("pattern", text(0, "Regular expression without look-around, e.g. func \\w+")),
		optional("path", text(0, "File or directory; default the workspace directory")),
		optional("glob", text(0, "Only files whose names match, e.g. *.ts or !*.min.js")),
		optional("ignoreCase", toggle("Ignore case")),
		optional("literal", toggle("Take pattern as plain text")),
		optional("context", integer(0, 20, "Lines around each match").with(0)),
		optional("limit", integer(1, 1000, "Maximum matching lines").with(100)),
	),
	Output: result(
		returns("details", "", "Limits reached, or null"),
	),
	Returns: []string{"workspace_id", "cwd", "details"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
}
