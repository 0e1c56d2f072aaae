package tunnel

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// Program is the name of the tunnel client.
const Program = "tunnel-client"

// Places are the directories in which the client is looked for, in order: those of a PATH, the account's own, and
// the one that holds the program given.
func Places(path, home, self string) (dirs []string) {
	for _, dir := range filepath.SplitList(path) {
		if filepath.IsAbs(dir) {
			dirs = append(dirs, filepath.Clean(dir))
		}
	}
	if home != "" {
		dirs = append(dirs, UserBin(home), filepath.Join(home, "bin"))
	}
	if self != "" {
		dirs = append(dirs, filepath.Dir(self))
	}
	var unique []string
	for _, dir := range dirs {
		if !slices.Contains(unique, dir) {
			unique = append(unique, dir)
		}
	}
	return unique
}

// UserBin is the directory of the account's own programs, where the client is installed.
func UserBin(home string) string { return filepath.Join(home, ".local", "bin") }

// NotFoundError says that there is no tunnel client.
type NotFoundError struct{ Places []string }

// Error says where it was looked for and what to do.
func (e *NotFoundError) Error() string {
	return fmt.Sprintf("%s was not found in %s. Get it from https://github.com/openai/tunnel-client/releases and install it with: rig-bridge tunnel install FILE --sha256 SUM",
		Program, strings.Join(e.Places, ", "))
}

// Find returns the client's path: the one given, else the first usable one in the places. It returns a
// *NotFoundError if there is none, and an error that says what to do if the one given cannot be used.
func Find(given string, places []string) (string, error) {
	if given != "" {
		return given, usable(given)
	}
	var bad error
	for _, dir := range places {
		path := filepath.Join(dir, Program)
		err := usable(path)
		if err == nil {
			return path, nil
		}
		if _, missing := os.Stat(path); missing == nil && bad == nil {
			bad = err
		}
	}
	if bad != nil {
		return "", bad
	}
	return "", &NotFoundError{Places: places}
}

// usable checks that a program can be run, and that nobody else can replace what is in it.
func usable(path string) error {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return fmt.Errorf("the tunnel client %s cannot be used: %w", path, plain(err))
	case !info.Mode().IsRegular():
		return fmt.Errorf("the tunnel client %s is not a program", path)
	case info.Mode().Perm()&0o002 != 0:
		return fmt.Errorf("everybody can change the tunnel client %s: chmod o-w %s", path, path)
	case unix.Access(path, unix.X_OK) != nil:
		return fmt.Errorf("the tunnel client %s may not be run: chmod +x %s", path, path)
	}
	return nil
}

// CheckCredential checks that a file holds a key and is the owner's alone. It returns the key, for nobody but
// whoever keeps it out of logs.
func CheckCredential(path string) (key string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", fmt.Errorf("the key's file %s cannot be read: %w", path, plain(err))
	}
	defer f.Close()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("the key's file %s: %w", path, plain(err))
	case !info.Mode().IsRegular():
		return "", fmt.Errorf("the key's file %s is not a file", path)
	case info.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("others can use the key's file %s (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	case info.Size() > maxSecret:
		return "", fmt.Errorf("the key's file %s holds more than a key", path)
	}
	b := make([]byte, maxSecret)
	n, _ := f.Read(b) // an error shows as no key
	key = strings.TrimSpace(string(b[:n]))
	if key == "" || strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", fmt.Errorf("the key's file %s must hold the key alone, on one line", path)
	}
	return key, nil
}

// maxSecret bounds a key, in bytes.
const maxSecret = 4096

// plain takes the path out of an error of the file system, which the sentence around it names.
func plain(err error) error {
	if e, ok := err.(*fs.PathError); ok { //nolint:errorlint // as package os returns it
		return e.Err
	}
	return err
}
