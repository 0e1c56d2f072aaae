package tools

var runStart = Definition{
	Name:        "run_start",
	Title:       "Start a named run",
	Description: markdown("run_start"),
	Input: arguments(
		workspaceArgument(), keyArgument(),
		optional("title", text(200, "What this run is for; default the thread's title")),
	),
	Output: result(
		returns("run_id", "string", "New run"),
		returns("run", "object", "The run"),
		returns("replayed", "boolean", "Repeat of an earlier call"),
	),
	Returns: []string{"workspace_id", "project_id", "thread_id", "run_id", "run"},
	Hints:   Hints{},
}
