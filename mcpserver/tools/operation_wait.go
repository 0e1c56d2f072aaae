package tools

var operationWait = Definition{
	Name:        "operation_wait",
	Title:       "Wait for an operation",
	Description: markdown("operation_wait"),
	Input: arguments(append(append([]field{workspaceArgument()}, operationArguments()...),
		optional("cursor", from(0, "cursor of the last answer; output starts there").with(0)),
		optional("wait_seconds", number(0, 50, "Seconds to wait for the end; 0 answers at once").with(45)),
	)...),
	Output: result(
		returns("operation_id", "string", "Operation"),
		returns("status", "string", "running, completed, failed or uncertain"),
		returns("cursor", "integer", "Position for the next call"),
		returns("exit_code", "", "Exit code; null after a signal"),
		returns("signal", "string", "Signal that ended it"),
	),
	Returns: []string{"workspace_id", "operation_id", "status"},
	OneOf:   []string{"operation_id", "request_key"},
	Hints:   Hints{ReadOnly: true, Idempotent: true},
}
