package tools

var workspaceOpen = Definition{
	Name:        "workspace_open",
	Title:       "Open a project workspace",
	Description: markdown("workspace_open"),
	Input: arguments(
		optional("cwd", text(0, "Directory, from home if relative; default the thread's, else home")),
		optional("project_root", text(0, "Root containing cwd; default the Git repository, else cwd")),
		optional("project_id", text(0, "Project from workspace_list")),
		optional("thread_id", text(0, "Thread to resume, from workspace_list")),
		optional("title", text(200, "Name of a new thread, e.g. Fix login bug")),
	),
	Output: result(
		returns("workspace_id", "string", "For all other tools"),
		returns("project_id", "string", "Project"),
		returns("thread_id", "string", "For resuming later"),
		returns("repository", "", "root, head, branch, dirty; or null"),
		optional("instruction_files", Schema{Type: "array", Description: "path, content", Items: &Schema{Type: "object"}}),
		optional("skill_definitions", Schema{Type: "array", Description: "name, description, path", Items: &Schema{Type: "object"}}),
	),
	Returns: []string{"workspace_id", "project_id", "thread_id", "cwd", "project", "thread", "repository", "instruction_files", "skill_definitions"},
	Hints:   Hints{},
}
