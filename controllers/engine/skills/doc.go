// Package skills finds what a workspace brings along for the assistant: skills (a directory with a SKILL.md, or
// a Markdown file with a description) and instruction files (AGENTS.md and its kin).
//
// Discover looks in the account's places and in those of the working directory and its parents up to the
// repository's root; the first skill of a name wins and every other is a diagnostic. Nothing found here is an
// error: what cannot be read or parsed becomes a diagnostic or is left out.
//
// What was read is kept in memory and checked by stat, so that opening a workspace again reads nothing. Only
// regular files are opened, directories are entered once however many links lead to them, and file sizes,
// entries and directories are bounded.
//
// The Workspace reconciler calls Discover, Paths, InstructionFiles and ContextBlock when a workspace opens; the
// Operation reconciler calls Info for skill_info.
package skills
