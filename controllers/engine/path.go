package engine

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// ResolvePath turns a path argument into a clean absolute path: "~" and "~/…" mean the home directory, a
// relative path is joined to the working directory, every other character is literal. All tools use this one
// rule. A NUL is refused with InvalidPath.
func (e Env) ResolvePath(arg string) (string, error) {
	if strings.IndexByte(arg, 0) >= 0 {
		return "", Errorf(InvalidPath, "The path contains a NUL character. Remove it and try again.")
	}
	switch {
	case arg == "~":
		arg = e.Home
	case strings.HasPrefix(arg, "~/"):
		arg = filepath.Join(e.Home, arg[2:])
	}
	if !filepath.IsAbs(arg) {
		arg = filepath.Join(e.Cwd, arg)
	}
	return filepath.Clean(arg), nil
}

// Canonical returns the one name under which a file is locked and written: all links resolved, including a
// final one. Missing trailing components are allowed; a dangling link is refused with InvalidPath.
func Canonical(path string) (string, error) {
	real, err := filepath.EvalSymlinks(path)
	if err == nil {
		return real, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		if _, serr := os.Stat(path); serr != nil {
			err = serr // EvalSymlinks has no errno for too many links
		}
		return "", SystemError("resolve", path, err)
	}
	if st, lerr := os.Lstat(path); lerr == nil && st.Mode()&fs.ModeSymlink != 0 {
		return "", &Error{Reason: InvalidPath, Path: path, Err: err,
			Message: "Cannot write through a dangling symbolic link: " + path + ". Name its target or remove the link."}
	}
	parent := filepath.Dir(path)
	if parent == path {
		return path, nil
	}
	real, err = Canonical(parent)
	if err != nil {
		return "", err
	}
	return filepath.Join(real, filepath.Base(path)), nil
}
