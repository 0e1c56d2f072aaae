package engine

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"syscall"

	"golang.org/x/text/encoding/unicode"
	"golang.org/x/text/unicode/norm"
)

// maxNearNames bounds how many look-alike names an error lists.
const maxNearNames = 10

// ResolveExisting is ResolvePath for tools that only read. The literal path always wins. If nothing exists
// there, these are tried in order: the argument without a leading "@", a file:// URL, and the one existing path
// whose names differ from the argument's only by Unicode normalisation, kind of blank, kind of apostrophe, or
// bytes that are not UTF-8 and were shown as U+FFFD. Several such names are FileNotFound, naming them. If
// nothing is found the literal path is returned, so that the caller reports what the user typed.
func (e Env) ResolveExisting(arg string) (string, error) {
	literal, err := e.ResolvePath(arg)
	if err != nil {
		return "", err
	}
	candidates := []string{literal}
	for _, other := range otherSpellings(arg) {
		if path, err := e.ResolvePath(other); err == nil {
			candidates = append(candidates, path)
		}
	}
	for _, path := range candidates {
		if exists(path) {
			return path, nil
		}
	}
	for _, path := range candidates {
		near, err := nearPath(path)
		if near != "" || err != nil {
			return near, err
		}
	}
	return literal, nil
}

// otherSpellings returns what a client may have meant by an argument that names nothing as it stands.
func otherSpellings(arg string) []string {
	var out []string
	if rest, ok := strings.CutPrefix(arg, "@"); ok && rest != "" {
		out = append(out, rest)
	}
	if u, err := url.Parse(arg); err == nil && u.Scheme == "file" && filepath.IsAbs(u.Path) &&
		(u.Host == "" || u.Host == "localhost") {
		out = append(out, u.Path)
	}
	return out
}

// exists says whether there is an entry of that name; a dangling link counts. When the answer cannot be had,
// for want of permission, the entry is taken to exist and the caller meets the error itself.
func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil || !isMissing(err)
}

func isMissing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// nearPath returns the one existing path that looks like the given one, or the empty string.
func nearPath(path string) (string, error) {
	parent, name := filepath.Dir(path), filepath.Base(path)
	if parent == path {
		return "", nil
	}
	if !exists(parent) {
		near, err := nearPath(parent)
		if near == "" || err != nil {
			return "", err
		}
		if parent = near; exists(filepath.Join(parent, name)) {
			return filepath.Join(parent, name), nil
		}
	}
	near := nearNames(parent, name)
	switch len(near) {
	case 0:
		return "", nil
	case 1:
		return filepath.Join(parent, near[0]), nil
	}
	quoted := make([]string, 0, maxNearNames)
	for _, n := range near[:min(len(near), maxNearNames)] {
		quoted = append(quoted, fmt.Sprintf("%+q", n))
	}
	return "", &Error{Reason: FileNotFound, Path: path,
		Message: fmt.Sprintf("No such file or directory: %s. %d names in its directory look like it: %s. Use ls and give one of them exactly.",
			path, len(near), strings.Join(quoted, ", "))}
}

// nearNames returns the entries of a directory that look like name, in byte order.
func nearNames(dir, name string) []string {
	if isPlainASCII(name) && !strings.ContainsAny(name, " '") {
		return nil // it looks like nothing but itself
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil
	}
	defer f.Close()
	want := lookAlike(name)
	var near []string
	for {
		names, err := f.Readdirnames(1024)
		for _, n := range names {
			if lookAlike(n) == want {
				near = append(near, n)
			}
		}
		if err != nil { // the end, or all that could be read
			sort.Strings(near)
			return near
		}
	}
}

// lookAlike maps names that a reader cannot tell apart to one form.
func lookAlike(name string) string {
	if isPlainASCII(name) {
		return name
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r == 0x00A0, r == 0x1680, r >= 0x2000 && r <= 0x200A, r == 0x202F, r == 0x205F, r == 0x3000:
			return ' '
		case r == 0x2018, r == 0x2019, r == 0x201B, r == 0x02BC, r == 0x2032, r == 0xFF07:
			return '\''
		}
		return r
	}, norm.NFC.String(ValidText(name)))
}

func isPlainASCII(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] >= 0x80 {
			return false
		}
	}
	return true
}

// ValidText returns bytes as text the way browsers decode UTF-8: each maximal ill-formed prefix of a
// character becomes one U+FFFD. A byte order mark stays.
func ValidText(s string) string {
	text, err := unicode.UTF8.NewDecoder().String(s)
	if err != nil { // the decoder replaces what is ill-formed, it does not fail
		return strings.ToValidUTF8(s, "\uFFFD")
	}
	return text
}
