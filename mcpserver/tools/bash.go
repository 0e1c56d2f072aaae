package tools

var bash = Definition{
	Name:        "bash",
	Title:       "Run a shell command",
	Description: markdown("bash"),
	Input: arguments(
		workspaceArgument(), keyArgument(),
		required("command", text(200_000, "Script for bash -c, e.g. go test ./...")),
		optional("timeout", number(1, 3600, "Seconds until it is stopped").with(120)),
		optional("wait_seconds", number(1, 3600, "Seconds before this call answers").with(45)),
	),
	Output: result(
		returns("exit_code", "", "Exit code; null after a signal"),
		returns("elapsed_ms", "integer", "Milliseconds so far"),
		returns("details", "", "Truncation, or null"),
		returns("status", "string", "running if not over"),
		returns("operation_id", "string", "For operation_wait, operation_cancel"),
		returns("cursor", "integer", "For operation_wait"),
		returns("replayed", "boolean", "Repeat of an earlier call"),
	),
	Returns: []string{"workspace_id", "cwd", "elapsed_ms"},
	Hints:   Hints{Destructive: true, OpenWorld: true},
	Large:   true,
}
