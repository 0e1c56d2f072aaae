package tools

var write = Definition{
	Name:        "write",
	Title:       "Write a whole file",
	Description: markdown("write"),
	Input: arguments(
		workspaceArgument(), keyArgument(),
		required("path", text(0, "File; relative to the workspace directory, ~ or absolute")),
		required("content", Schema{Type: "string", Description: "Complete new text, UTF-8", MaxLength: ptr(2_000_000)}),
		required("expected_revision", revisionArgument),
	),
	Output:  result(changed()...),
	Returns: []string{"workspace_id", "cwd", "path", "changed_paths", "revision"},
	Hints:   Hints{Destructive: true, Idempotent: true},
}

// revisionArgument is the revision that write and edit compare first.
var revisionArgument = text(0, "revision from read; missing if there is no file")

// changed are the fields of a result that changed a file.
func changed() []field {
	return []field{
		returns("path", "string", "Absolute path"),
		returns("revision", "string", "For the next change"),
		returns("details", "", "Diff, or null"),
		returns("replayed", "boolean", "Repeat of an earlier call"),
	}
}

func ptr(n int) *int { return &n }
