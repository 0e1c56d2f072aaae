// Package searchpath holds the rule by which the daemon finds programs: the PATH that commands get.
//
// A service and a desktop application are started with a bare PATH, in which the user's own tools are missing. So
// the daemon asks the login shell once, at its start, and merges three lists:
//
//   - the login shell's PATH, in its order;
//   - the daemon's own PATH: what it was started with. In a service that is the PATH at installation. A directory
//     that only this list has keeps its place: it stands before the directory that it stood before. So an
//     environment that was activated in the terminal stays in front;
//   - the directories of the system, last.
//
// A directory counts once. Relative parts are left out: they would mean another directory for each command.
//
// The daemon applies the rule and serves the result to the account's own programs at Route of its socket;
// rigctl doctor shows it. The package runs nothing.
package searchpath

import (
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// Route is where the daemon serves a Report, on its socket only.
const Route = "/searchpath"

// Source is a list that a directory came from.
type Source string

// The sources.
const (
	Login  Source = "login shell"
	Own    Source = "daemon's own"
	System Source = "system"
)

// Part is one directory of the merged PATH.
type Part struct {
	// Dir is absolute.
	Dir string `json:"dir"`
	// Sources are the lists that have it, in the order of the rule; there is at least one.
	Sources []Source `json:"sources"`
}

// Report is the merged PATH and how it came about.
type Report struct {
	Parts []Part `json:"parts"`
	// Dropped are the parts that were left out because they are relative.
	Dropped []string `json:"dropped,omitempty"`
	// Shell is the login shell that was asked; empty if there is none.
	Shell string `json:"shell,omitempty"`
	// Problem says why the login shell gave no PATH, and what to do; empty if it gave one.
	Problem string `json:"problem,omitempty"`
}

// Path is the merged PATH as a program wants it.
func (r Report) Path() string {
	dirs := make([]string, len(r.Parts))
	for i, p := range r.Parts {
		dirs[i] = p.Dir
	}
	return strings.Join(dirs, string(filepath.ListSeparator))
}

// systemDirs are where a system has its programs.
func systemDirs() []string {
	if runtime.GOOS == "darwin" {
		return []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/sbin", "/sbin"}
	}
	return []string{"/usr/local/bin", "/usr/bin", "/bin", "/usr/local/sbin", "/usr/sbin", "/sbin"}
}

// Merge applies the rule to the PATH of the login shell, empty if it gave none, and the daemon's own.
func Merge(login, own string) Report {
	r := Report{}
	fromLogin, fromOwn := r.absolute(login), r.absolute(own)
	dirs := slices.Clone(fromLogin)
	next := len(dirs) // where what only the daemon has goes: before what follows it
	for _, dir := range slices.Backward(fromOwn) {
		if at := slices.Index(dirs, dir); at >= 0 {
			next = at
		} else {
			dirs = slices.Insert(dirs, next, dir)
		}
	}
	for _, dir := range systemDirs() {
		if !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		p := Part{Dir: dir}
		for _, list := range []struct {
			source Source
			dirs   []string
		}{{Login, fromLogin}, {Own, fromOwn}, {System, systemDirs()}} {
			if slices.Contains(list.dirs, dir) {
				p.Sources = append(p.Sources, list.source)
			}
		}
		r.Parts = append(r.Parts, p)
	}
	return r
}

// absolute returns the absolute parts of a PATH, each once, and notes the others as dropped.
func (r *Report) absolute(path string) (dirs []string) {
	for _, part := range filepath.SplitList(path) {
		if part == "" { // it means the current directory
			part = "."
		}
		if !filepath.IsAbs(part) {
			if !slices.Contains(r.Dropped, part) {
				r.Dropped = append(r.Dropped, part)
			}
			continue
		}
		if dir := filepath.Clean(part); !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	return dirs
}
