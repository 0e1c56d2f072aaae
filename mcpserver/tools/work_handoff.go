package tools

var workHandoff = Definition{
	Name:        "work_handoff",
	Title:       "Hand work back to the user",
	Description: markdown("work_handoff"),
	Input: arguments(
		workspaceArgument(), keyArgument(),
		required("reason", Schema{Type: "string", Description: "Why the turn ends", Enum: []string{"completed", "needs_input", "blocked", "failed", "cancelled"}}),
		required("summary", text(2000, "What was done and what the user should do now")),
		optional("run_id", text(0, "Run to finish; default the thread's latest")),
	),
	Output: result(
		returns("run_id", "string", "Finished run"),
		returns("handoff_id", "string", "Handoff"),
		returns("handoff", "object", "The handoff"),
		returns("replayed", "boolean", "Repeat of an earlier call"),
	),
	Returns: []string{"workspace_id", "project_id", "thread_id", "run_id", "handoff_id", "handoff"},
	Hints:   Hints{},
}
