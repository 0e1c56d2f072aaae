package tools

var edit = Definition{
	Name:        "edit",
	Title:       "Edit parts of a file",
	Description: markdown("edit"),
	Input: arguments(
		workspaceArgument(), keyArgument(),
		required("path", text(0, "File; relative to the workspace directory, ~ or absolute")),
		required("expected_revision", revisionArgument),
		required("edits", Schema{
			Type: "array", Description: "Replacements", MinItems: ptr(1), MaxItems: ptr(100),
			Items: editItem(),
		}),
	),
	Output:  result(changed()...),
	Returns: []string{"workspace_id", "cwd", "path", "changed_paths", "revision", "details"},
	Hints:   Hints{Destructive: true},
}

// editItem describes one replacement.
func editItem() *Schema {
	s := arguments(
		required("oldText", text(0, "Exact text, unique in the file")),
		required("newText", Schema{Type: "string", Description: "Replacement; empty deletes"}),
	)
	return &s
}
