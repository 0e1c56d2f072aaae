// Package project finds out to which project a directory belongs, and what state its git checkout is in.
//
// Discovery reads git's own files and starts no process: a project's identity must not depend on git being
// installed. The state of the checkout comes from one git process that takes no locks and has two seconds, and
// from memory as long as nothing has changed of what that process saw: see memory.
package project

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// Project is what a directory belongs to.
type Project struct {
	// Root is the top directory: of the checkout, or the directory itself.
	Root string
	// Identity is "git:" and the git common directory, which subdirectories and worktrees share, or
	// "directory:" and the directory.
	Identity string
	// Git says whether Root is a git checkout with a working tree.
	Git bool
}

// Discover finds the project of a directory, which must be absolute and without links.
func Discover(cwd string) Project {
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if common, ok := commonDir(filepath.Join(dir, ".git")); ok {
			return Project{Root: dir, Identity: "git:" + common, Git: true}
		}
		if isGitDir(dir) {
			return Project{Root: dir, Identity: "git:" + dir}
		}
		if dir == filepath.Dir(dir) {
			return Project{Root: cwd, Identity: "directory:" + cwd}
		}
	}
}

// commonDir returns the directory, without links, that a checkout with this .git entry shares with its worktrees.
func commonDir(dotGit string) (string, bool) {
	_, common, ok := gitDirs(dotGit)
	if !ok {
		return "", false
	}
	if real, err := filepath.EvalSymlinks(common); err == nil {
		common = real
	}
	return common, true
}

// gitDirs resolves a .git entry, a directory or a file that points to one (gitrepository-layout(5)), and the
// directory that it shares with other worktrees, often itself.
func gitDirs(dotGit string) (dir, common string, ok bool) {
	st, err := os.Stat(dotGit)
	if err != nil {
		return "", "", false
	}
	dir = dotGit
	if !st.IsDir() {
		text, err := readSmall(dotGit)
		target, ok := strings.CutPrefix(text, "gitdir: ")
		if err != nil || !ok {
			return "", "", false
		}
		dir = inside(filepath.Dir(dotGit), target)
	}
	common = dir
	if text, err := readSmall(filepath.Join(dir, "commondir")); err == nil {
		common = inside(dir, text)
	}
	return dir, common, isGitDir(common)
}

func isGitDir(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

func readSmall(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !st.Mode().IsRegular() {
		return "", fs.ErrInvalid
	}
	b := make([]byte, 8192)
	n, err := f.Read(b)
	return strings.TrimRight(string(b[:n]), "\r\n"), err
}

func inside(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}
