package tools

var operationCancel = Definition{
	Name:        "operation_cancel",
	Title:       "Stop an operation",
	Description: markdown("operation_cancel"),
	Input:       arguments(append([]field{workspaceArgument()}, operationArguments()...)...),
	Output: result(
		returns("operation_id", "string", "Operation"),
		returns("status", "string", "State after the stop"),
	),
	Returns: []string{"workspace_id", "operation_id", "status"},
	OneOf:   []string{"operation_id", "request_key"},
	Hints:   Hints{Destructive: true, Idempotent: true},
}
