package bash

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// FullOutputLimit is the size in bytes at which a full-output file stops growing.
const FullOutputLimit = 256 << 20

// fullOutput writes the raw bytes of both streams to a file of the owner's once the limits are passed. It is
// used under Output.ingest.
type fullOutput struct {
	dir     string
	id      string // of the call
	limit   int64
	backlog []byte // what came before the limits were passed
	file    *os.File
	path    string
	written int64
	cut     bool  // something was left out because of the limit
	err     error // why the file is missing or not complete
}

// write takes a chunk; passed says whether the limits of the text are passed by now.
func (f *fullOutput) write(raw []byte, passed bool) {
	if !passed {
		f.backlog = append(f.backlog, raw...)
		return
	}
	f.open()
	f.append(raw)
}

// open creates the file and writes the backlog; it does so once.
func (f *fullOutput) open() {
	if f.file != nil || f.err != nil {
		return
	}
	f.file, f.err = createFull(f.dir, f.id)
	if f.err != nil {
		f.backlog = nil
		return
	}
	f.path = f.file.Name()
	f.append(f.backlog)
	f.backlog = nil
}

func (f *fullOutput) append(raw []byte) {
	if f.err != nil {
		return
	}
	if room := f.limit - f.written; int64(len(raw)) > room {
		raw, f.cut = raw[:room], true
	}
	if len(raw) == 0 {
		return
	}
	n, err := f.file.Write(raw)
	f.written += int64(n)
	f.err = err
}

// close closes the file; passed as in write: the end of a character may pass the limits.
func (f *fullOutput) close(passed bool) {
	if passed {
		f.open()
	}
	f.backlog = nil
	if f.file == nil {
		return
	}
	if err := f.file.Close(); f.err == nil {
		f.err = err
	}
}

// notice says where the full output is.
func (f *fullOutput) notice() string {
	switch {
	case f.path == "":
		return "The full output could not be kept: " + plain(f.err)
	case f.err != nil:
		return fmt.Sprintf("Full output: %s (only the first %s: %s)", f.path, engine.FormatSize(f.written), plain(f.err))
	case f.cut:
		return fmt.Sprintf("Full output: %s (only the first %s)", f.path, engine.FormatSize(f.written))
	default:
		return "Full output: " + f.path
	}
}

// plain gives the cause of a file's error without the path, which the notice has.
func plain(err error) string {
	var at *fs.PathError
	if errors.As(err, &at) {
		err = at.Err
	}
	return err.Error()
}

// FullOutputPath is the file that holds the full output of a call, if that was long enough to be cut: in dir,
// pi-bash-<16 hex digits>.log, the digits a hash of the call's ID.
func FullOutputPath(dir, id string) string {
	sum := sha256.Sum256([]byte(id))
	return filepath.Join(dir, "pi-bash-"+hex.EncodeToString(sum[:8])+".log")
}

// createFull makes the new file of a call, which only the owner can read.
func createFull(dir, id string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(FullOutputPath(dir, id), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
}

var fullName = regexp.MustCompile(`^pi-bash-[0-9a-f]{16}\.log$`)

// PruneOutputs removes full-output files from dir: those last written longer than maxAge ago, and then the
// oldest until the rest is at most maxTotal bytes. Other files are left alone. A missing directory is no error.
func PruneOutputs(dir string, maxAge time.Duration, maxTotal int64) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("prune full outputs: %w", err)
	}
	var kept []fs.FileInfo
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && info.Mode().IsRegular() && fullName.MatchString(e.Name()) {
			kept = append(kept, info)
		}
	}
	slices.SortFunc(kept, func(a, b fs.FileInfo) int { // the newest first
		return cmp.Or(b.ModTime().Compare(a.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	var total int64
	var failed []error
	for _, info := range kept {
		total += info.Size()
		if time.Since(info.ModTime()) <= maxAge && total <= maxTotal {
			continue
		}
		if err := os.Remove(filepath.Join(dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			failed = append(failed, fmt.Errorf("prune full outputs: %w", err))
		}
	}
	return errors.Join(failed...)
}
