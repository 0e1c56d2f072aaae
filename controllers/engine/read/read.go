package read

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
	"time"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

const (
	// MaxFileSize is the size up to which a file is read, in bytes.
	MaxFileSize = 32 << 20

	// attempts is how often a file that changes under the reader is passed over.
	attempts = 4
	// writerPause is how long the first repetition waits; each further one waits that much longer.
	writerPause = 10 * time.Millisecond
	// chunkSize is the size of the reading buffer, in bytes.
	chunkSize = 128 << 10
)

// Args are the arguments of a call.
type Args struct {
	// Path names the file; Env.ResolveExisting is applied to it.
	Path string
	// Offset is the first line wanted, counted from 1; less means from the start.
	Offset int
	// Limit is the largest number of lines wanted; less than 1 means no limit but the general one.
	Limit int
}

// Details is the metadata of a text that was cut.
type Details struct {
	Truncation engine.Truncation `json:"truncation"`
}

// Run reads one file. Failures are *engine.Error: FileNotFound, PermissionDenied, UnsupportedFile,
// FileTooLarge, OffsetBeyondEnd, InvalidPath, Cancelled and what the system reports besides.
func Run(ctx context.Context, env engine.Env, a Args) (*engine.Result, error) {
	path, err := env.ResolveExisting(a.Path)
	if err != nil {
		return nil, err
	}
	s, err := settledSnapshot(ctx, path, a)
	if err != nil {
		return nil, describe(path, err)
	}
	res := &engine.Result{Path: path, Revision: s.revision}
	if s.image != nil {
		text, picture, err := renderImage(ctx, s.image, s.mimeType)
		if err != nil {
			return nil, describe(path, err)
		}
		if picture != nil || !isPlainText(s.image) {
			res.Text, res.Images = text, picture
			return res, nil
		}
		s.window = newWindow(a) // text that merely begins as an image does
		s.window.feed(s.image)
	}
	if err := s.window.write(res, path); err != nil {
		return nil, err
	}
	return res, nil
}

// describe puts a failure into words. A file that has nothing to give yet (some below /proc and /sys) is not
// waited for.
func describe(path string, err error) error {
	if errors.Is(err, syscall.EAGAIN) {
		return &engine.Error{Reason: engine.UnsupportedFile, Path: path, Err: err,
			Message: "Reading " + path + " would wait for data to arrive. Use bash to inspect devices and special files."}
	}
	return engine.SystemError("read", path, err)
}

// snapshot is one pass over a file.
type snapshot struct {
	revision string
	window   *window // the wanted lines, unless it is an image
	image    []byte  // the whole file, if it looks like an image
	mimeType string
}

// settledSnapshot passes over the file until it did not change meanwhile. A file that never rests, such as a
// log in use, gives its last pass: digest and text are still of the same bytes.
func settledSnapshot(ctx context.Context, path string, a Args) (*snapshot, error) {
	previous := ""
	for attempt := 1; ; attempt++ {
		s, state, err := takeSnapshot(ctx, path, a)
		if err != nil || attempt == attempts || state == settled || state == fresh && s.revision == previous {
			return s, err
		}
		previous = s.revision
		if state == changing {
			if err := pause(ctx, time.Duration(attempt)*writerPause); err != nil {
				return nil, err
			}
		}
	}
}

// pause gives a writer time to finish.
func pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// state says how far a pass can be relied on.
type state int

const (
	// changing: the file changed during the pass.
	changing state = iota
	// fresh: it seems unchanged, but was written so lately that the clock of the file system may not have
	// ticked between that and another change. Two passes that agree settle it.
	fresh
	// settled: the file is what was read.
	settled
)

// tick is longer than the clock of a local file system takes from one value to the next.
const tick = 50 * time.Millisecond

// stateAfter compares what the file's inode said before and after a pass.
func stateAfter(before, after fs.FileInfo) state {
	x, y := before.Sys().(*syscall.Stat_t), after.Sys().(*syscall.Stat_t)
	xContent, xInode := engine.Times(x)
	yContent, yInode := engine.Times(y)
	switch {
	case x.Size != y.Size || xContent != yContent || xInode != yInode:
		return changing
	case time.Since(after.ModTime()) < tick:
		return fresh
	}
	return settled
}

func takeSnapshot(ctx context.Context, path string, a Args) (*snapshot, state, error) {
	f, before, err := engine.OpenRegular(path)
	if err != nil {
		return nil, changing, err
	}
	defer f.Close()
	if before.Size() > MaxFileSize {
		return nil, changing, tooLarge(path)
	}
	s, n, err := scan(ctx, f, before.Size(), a)
	if err != nil {
		return nil, changing, err
	}
	if n > MaxFileSize {
		return nil, changing, tooLarge(path)
	}
	after, err := f.Stat()
	if err != nil {
		return nil, changing, err
	}
	return s, stateAfter(before, after), nil
}

func tooLarge(path string) error {
	return &engine.Error{Reason: engine.FileTooLarge, Path: path,
		Message: "Read snapshots are limited to 32 MiB. Use a bounded bash command for larger files."}
}

// scan passes over f, which is expected to hold size bytes, and says how many there were: at most one more
// than MaxFileSize.
func scan(ctx context.Context, f *os.File, size int64, a Args) (*snapshot, int64, error) {
	buf := make([]byte, max(sniffLen, min(size+1, chunkSize)))
	head, err := io.ReadFull(f, buf[:sniffLen])
	if err != nil && err != io.EOF && err != io.ErrUnexpectedEOF {
		return nil, 0, err
	}
	s := &snapshot{mimeType: sniff(buf[:head], max(size, int64(head)))}
	digest := sha256.New()
	src := io.LimitReader(io.MultiReader(bytes.NewReader(bytes.Clone(buf[:head])), f), MaxFileSize+1)
	var n int64
	if s.mimeType != "" {
		whole := bytes.NewBuffer(make([]byte, 0, size+bytes.MinRead))
		n, err = whole.ReadFrom(io.TeeReader(src, digest))
		s.image = whole.Bytes()
	} else {
		s.window = newWindow(a)
		n, err = s.window.readFrom(ctx, src, digest, buf)
	}
	s.revision = "sha256:" + hex.EncodeToString(digest.Sum(nil))
	return s, n, err
}

// isPlainText says whether bytes that begin as an image does and are none can be shown as text.
func isPlainText(b []byte) bool { return utf8.Valid(b) && bytes.IndexByte(b, 0) < 0 }
