package replace

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"hash"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// Missing is the revision of a file that does not exist.
const Missing = "missing"

// Target is a file that is to be replaced, as it was when Look read it.
type Target struct {
	// Path is the canonical name: absolute, without links.
	Path string
	// Revision is that of the bytes that Look read, or Missing.
	Revision string
	// Size is the number of those bytes.
	Size int64
	// Links is the number of names that the file has; 0 if it is missing.
	Links uint64
}

// Look reads the target once, to hash it and to hand its bytes to w (nil if they are of no interest). A limit
// above 0 is the largest size in bytes; a larger file is FileTooLarge. A target that is missing is no error, one
// that is not a regular file or that the account may not write is.
func Look(ctx context.Context, path string, limit int64, w io.Writer) (Target, error) {
	t := Target{Path: path, Revision: Missing}
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return t, nil
	}
	if err != nil {
		return t, err
	}
	defer f.Close()
	if err := unix.Faccessat(unix.AT_FDCWD, path, unix.W_OK, unix.AT_EACCESS); err != nil {
		return t, engine.SystemError("write", path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return t, engine.SystemError("read", path, err)
	}
	if limit > 0 && st.Size > limit {
		return t, &engine.Error{Reason: engine.FileTooLarge, Path: path, Message: "The file is too large: " + path +
			" has " + engine.FormatSize(st.Size) + ", the limit is " + engine.FormatSize(limit) +
			". Change it with a bash command instead."}
	}
	if b, ok := w.(*bytes.Buffer); ok && limit > 0 {
		b.Grow(int(st.Size) + bytes.MinRead)
	}
	t.Links = uint64(st.Nlink) //nolint:unconvert // the width of Nlink depends on the architecture
	t.Revision, t.Size, err = digest(ctx, f, w)
	if err != nil {
		return t, engine.SystemError("read", path, err)
	}
	return t, nil
}

// Revision returns the revision of the file, or Missing. It never follows a final link and never blocks on a
// pipe or a device.
func Revision(path string) (string, error) {
	f, err := openRegular(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Missing, nil
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	revision, _, err := digest(context.Background(), f, nil)
	return revision, engine.SystemError("read", path, err)
}

// openRegular opens a regular file for reading; everything else is an *engine.Error.
func openRegular(path string) (*os.File, error) {
	st, err := os.Lstat(path)
	if err != nil {
		return nil, engine.SystemError("read", path, err)
	}
	if err := mustBeRegular(path, st); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, engine.SystemError("read", path, err)
	}
	if st, err = f.Stat(); err == nil { // it may have been exchanged meanwhile
		err = mustBeRegular(path, st)
	}
	if err != nil {
		f.Close()
		return nil, engine.SystemError("read", path, err)
	}
	return f, nil
}

func mustBeRegular(path string, st fs.FileInfo) error {
	switch {
	case st.Mode().IsRegular():
		return nil
	case st.IsDir():
		return &engine.Error{Reason: engine.IsADirectory, Path: path,
			Message: "Cannot write " + path + ": it is a directory. Name a file in it."}
	default:
		return &engine.Error{Reason: engine.UnsupportedFile, Path: path,
			Message: "Cannot write " + path + ": it is not a regular file. Use bash for devices, pipes and sockets."}
	}
}

var buffers = sync.Pool{New: func() any { return new([64 << 10]byte) }}

// digest hashes r and copies it to w, in pieces, so that a cancelled context ends it.
func digest(ctx context.Context, r io.Reader, w io.Writer) (revision string, size int64, err error) {
	h := sha256.New()
	pooled := buffers.Get().(*[64 << 10]byte)
	defer buffers.Put(pooled)
	buf := pooled[:]
	for {
		if err := ctx.Err(); err != nil {
			return "", size, err
		}
		n, err := r.Read(buf)
		h.Write(buf[:n])
		size += int64(n)
		if w != nil && n > 0 {
			if _, werr := w.Write(buf[:n]); werr != nil {
				return "", size, werr
			}
		}
		if errors.Is(err, io.EOF) {
			return name(h), size, nil
		}
		if err != nil {
			return "", size, err
		}
	}
}

// RevisionOf returns the revision of bytes in memory.
func RevisionOf(content []byte) string {
	h := sha256.New()
	h.Write(content)
	return name(h)
}

func name(h hash.Hash) string { return "sha256:" + hex.EncodeToString(h.Sum(nil)) }

// Demand compares the target with the revision that the caller expects and returns a RevisionConflict if it has
// another one.
func (t Target) Demand(expected string) error {
	if t.Revision == expected {
		return nil
	}
	return conflict(t.Path, expected, t.Revision)
}

func conflict(path, expected, current string) error {
	e := &engine.Error{Reason: engine.RevisionConflict, Path: path, CurrentRevision: current}
	switch {
	case current == Missing:
		e.Message = "The file " + path + " does not exist (current revision: missing), but expected_revision is " +
			expected + ". It was removed or never made: use write with expected_revision \"missing\" to create it."
	case expected == Missing:
		e.Message = "The file " + path + " exists already; its current revision is " + current +
			", but expected_revision is \"missing\". Read it, then use its revision."
	default:
		e.Message = "The file " + path + " is not as expected; its current revision is " + current +
			", but expected_revision is " + expected + ". Read it again, then use its revision."
	}
	return e
}
