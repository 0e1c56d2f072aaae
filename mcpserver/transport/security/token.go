package security

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rigbridge/rigbridge/api/atomicfile"
)

// CodeInvalidConfig is the contract's code of a ConfigError.
const CodeInvalidConfig = "INVALID_CONFIG"

// ConfigError says what is wrong with the token file and what to do. It never
// holds the file's content.
type ConfigError struct {
	// Path is the token file.
	Path string
	// Problem is a sentence for the user.
	Problem string
	// Err is the cause, if the system gave one.
	Err error
}

// Error implements error.
func (e *ConfigError) Error() string {
	return fmt.Sprintf("%s: token file %s: %s", CodeInvalidConfig, e.Path, e.Problem)
}

// Unwrap returns the cause.
func (e *ConfigError) Unwrap() error { return e.Err }

// Token is the value that Authorization must carry, scheme included. Only its
// digest is kept, so that it cannot be printed by accident.
type Token struct{ digest [sha256.Size]byte }

// tokenValue is a whole token file: 43 characters hold 256 bits.
var tokenValue = regexp.MustCompile(`^Bearer [A-Za-z0-9_-]{43,}$`)

// maxTokenFile bounds what is read of a token file, in bytes.
const maxTokenFile = 4096

// LoadToken reads the token file at path. A missing file is made, with a new
// token and mode 0600, unless it was given explicitly. The error is a
// *ConfigError.
func LoadToken(path string, explicit bool) (*Token, error) {
	value, err := readToken(path)
	if errors.Is(err, fs.ErrNotExist) && !explicit {
		if err := createToken(path); err != nil {
			return nil, &ConfigError{path, "cannot be created: " + cause(err), err}
		}
		value, err = readToken(path)
	}
	if err != nil {
		var bad *ConfigError
		if errors.As(err, &bad) {
			return nil, bad
		}
		return nil, &ConfigError{path, "cannot be read: " + cause(err), err}
	}
	return NewToken(value), nil
}

// NewToken makes a Token of a whole Authorization value such as "Bearer …".
func NewToken(value string) *Token { return &Token{sha256.Sum256([]byte(value))} }

// Matches tells in constant time whether an Authorization header is the token.
func (t *Token) Matches(header string) bool {
	digest := sha256.Sum256([]byte(header))
	return subtle.ConstantTimeCompare(digest[:], t.digest[:]) == 1
}

// String keeps the token out of logs, its digest too.
func (t *Token) String() string { return "Token(hidden)" }

// GoString keeps the token out of %#v.
func (t *Token) GoString() string { return t.String() }

// readToken reads and checks the value.
func readToken(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", &ConfigError{path, "must be a regular file", nil}
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return "", &ConfigError{path, fmt.Sprintf("has mode %04o, others must not have access: chmod 600 it", mode), nil}
	}
	raw, err := io.ReadAll(io.LimitReader(f, maxTokenFile))
	if err != nil {
		return "", err
	}
	value := strings.TrimRight(string(raw), "\r\n")
	if !tokenValue.MatchString(value) {
		return "", &ConfigError{path, `must hold "Bearer " and at least 43 characters of A-Z a-z 0-9 - _`, nil}
	}
	return value, nil
}

// createToken makes a new token. Of two daemons that start at once one wins.
func createToken(path string) error {
	secret := make([]byte, 32)
	rand.Read(secret) // never fails
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	err := atomicfile.Create(path, []byte("Bearer "+base64.RawURLEncoding.EncodeToString(secret)), 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// cause says a system's error without the path that the message has already.
func cause(err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "it does not exist"
	case errors.Is(err, fs.ErrPermission):
		return "permission denied"
	}
	var path *fs.PathError
	if errors.As(err, &path) {
		return path.Err.Error()
	}
	return err.Error()
}
