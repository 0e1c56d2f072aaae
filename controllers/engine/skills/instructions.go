package skills

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// maxInstructions is where the text of one file is cut, in UTF-16 code units.
const maxInstructions = 65_536

// instructionNames are looked for in each directory; the first that exists counts.
var instructionNames = []string{"AGENTS.override.md", "AGENTS.md", "AGENTS.MD", "CLAUDE.md", "CLAUDE.MD"}

// File is a text that the assistant should know from the start.
type File struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

// InstructionFiles collects the instruction files of a workspace, from general to specific: that of the
// account's agent directory, then one for each directory from the root of the file system down to the working
// directory, then every CONTEXT.md on that way. A worktree inside its main checkout has its own copy of what
// lies at the checkout's root, so that the latter is left out.
func InstructionFiles(env engine.Env) []File { return shared.instructionFiles(env) }

func (c *cache) instructionFiles(env engine.Env) []File {
	dirs := downTo(env.Cwd)
	mainCopy := c.shadowedCheckout(env.Cwd)
	var files []File
	for _, dir := range append([]string{agentDir(env)}, dirs...) {
		if dir == mainCopy {
			continue
		}
		if f, ok := c.instructionFile(dir); ok && !slices.ContainsFunc(files, func(g File) bool { return g.Path == f.Path }) {
			files = append(files, f)
		}
	}
	for _, dir := range dirs {
		f, ok := c.readText(filepath.Join(dir, "CONTEXT.md"))
		if f.Content = strings.TrimSpace(f.Content); ok && f.Content != "" {
			files = append(files, f)
		}
	}
	for i := range files {
		files[i].Content = cut(files[i].Content, files[i].Path)
	}
	return files
}

// ContextBlock puts instruction files into one text for the assistant, empty if there are none.
func ContextBlock(files []File) string {
	if len(files) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("<project_context>\n\nInstructions for work here, from general to specific. Where two differ, follow the later one.\n")
	for _, f := range files {
		b.WriteString("\n<project_instructions path=\"" + f.Path + "\">\n" + f.Content + "\n</project_instructions>\n")
	}
	b.WriteString("\n</project_context>")
	return b.String()
}

// downTo lists the directories from the root of the file system down to dir.
func downTo(dir string) []string {
	dirs := []string{dir}
	for parent := filepath.Dir(dir); parent != dir; dir, parent = parent, filepath.Dir(parent) {
		dirs = append(dirs, parent)
	}
	slices.Reverse(dirs)
	return dirs
}

func (c *cache) instructionFile(dir string) (File, bool) {
	for _, name := range instructionNames {
		if f, ok := c.readText(filepath.Join(dir, name)); ok {
			return f, true
		}
	}
	return File{}, false
}

func (c *cache) readText(path string) (File, bool) {
	text, _, err := file(c, kindText, path, func(text string) string { return strings.TrimPrefix(text, "\ufeff") })
	return File{Path: path, Content: text}, err == nil
}

// cut shortens a text to maxInstructions and says where the rest is.
func cut(text, path string) string {
	n := 0
	for i, r := range text {
		if n++; r > 0xFFFF {
			n++
		}
		if n > maxInstructions {
			return text[:i] + fmt.Sprintf("\n\n[Cut after %d characters. Use read on %s for the rest.]", maxInstructions, path)
		}
	}
	return text
}

// shadowedCheckout returns the root of the main checkout if dir is in a linked worktree that lies inside it
// and has an instruction file of its own; else the empty string.
func (c *cache) shadowedCheckout(dir string) string {
	root := repositoryRoot(dir)
	if root == "" {
		return ""
	}
	link, ok := c.readText(filepath.Join(root, ".git"))
	gitDir, isLink := strings.CutPrefix(link.Content, "gitdir: ")
	if !ok || !isLink {
		return ""
	}
	gitDir = absolute(root, strings.TrimSpace(gitDir))
	common, ok := c.readText(filepath.Join(gitDir, "commondir"))
	if !ok {
		return "" // a submodule, not a worktree
	}
	main := filepath.Dir(absolute(gitDir, strings.TrimSpace(common.Content)))
	if real, err := filepath.EvalSymlinks(main); err == nil {
		main = real
	}
	if main == root || !within(root, main) {
		return ""
	}
	if _, err := os.Stat(filepath.Join(main, ".git")); err != nil {
		return "" // a bare repository has no checkout
	}
	if _, ok := c.instructionFile(root); !ok {
		return ""
	}
	return main
}

func absolute(base, path string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(base, path)
	}
	return filepath.Clean(path)
}
