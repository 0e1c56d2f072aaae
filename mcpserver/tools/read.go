package tools

var read = Definition{
	Name:        "read",
	Title:       "Read a file",
	Description: markdown("read"),
	Input: arguments(
		workspaceArgument(),
		required("path", text(0, "File; relative to the workspace directory, ~ or absolute")),
		optional("offset", from(1, "First line, 1-based").with(1)),
		optional("limit", integer(1, 2000, "Maximum lines; default as many as fit, at most 2000")),
	),
	Output: result(
		returns("path", "string", "Absolute path"),
		returns("revision", "string", "SHA-256 of the whole file, for write and edit"),
		returns("details", "", "Truncation counts, or null"),
	),
	Returns: []string{"workspace_id", "cwd", "path", "revision", "details"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
	Large:   true,
}
