package ls

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// DefaultLimit is the largest number of entries listed unless a limit is given.
const DefaultLimit = 500

// batch is how many entries are read at a time.
const batch = 2048

// Args are the arguments of a call.
type Args struct {
	// Path names the directory; Env.ResolveExisting is applied to it. Empty means the working directory.
	Path string
	// Limit is the largest number of entries listed; less than 1 means DefaultLimit.
	Limit int
}

// Details is the metadata of a listing that was cut.
type Details struct {
	// EntryLimitReached is the limit, if there were more entries.
	EntryLimitReached int `json:"entryLimitReached,omitempty"`
	// Truncation is set if the text was too large.
	Truncation *engine.Truncation `json:"truncation,omitempty"`
}

// Run lists a directory. Failures are *engine.Error: FileNotFound, NotADirectory, PermissionDenied,
// InvalidPath, Cancelled and what the system reports besides. Result.Path is set if a path was given.
func Run(ctx context.Context, env engine.Env, a Args) (*engine.Result, error) {
	dir, err := env.ResolveExisting(a.Path)
	if err != nil {
		return nil, err
	}
	limit := a.Limit
	if limit < 1 {
		limit = DefaultLimit
	}
	entries := newSelection(limit)
	if err := readDir(ctx, dir, entries.add); err != nil {
		return nil, describe(dir, err)
	}
	res := &engine.Result{}
	if a.Path != "" {
		res.Path = dir
	}
	write(res, dir, entries)
	return res, nil
}

// write puts the selected entries into the result.
func write(res *engine.Result, dir string, entries *selection) {
	if entries.total == 0 {
		res.Text = "(empty directory)"
		return
	}
	shown := entries.first()
	names := make([]string, len(shown))
	for i, e := range shown {
		names[i] = engine.ValidText(e.Name())
		if isDir(dir, e) {
			names[i] += "/"
		}
	}
	t := engine.TruncateHead(strings.Join(names, "\n"), engine.NoLineLimit, engine.MaxBytes)
	var notices []string
	var details Details
	if entries.total > len(shown) {
		notices = append(notices, fmt.Sprintf("%d entries limit reached. Use limit=%d for more", entries.limit, 2*entries.limit))
		details.EntryLimitReached = entries.limit
	}
	if t.Truncated {
		notices = append(notices, engine.FormatSize(engine.MaxBytes)+" limit reached")
		details.Truncation = &t
	}
	res.Text = engine.Notices(t.Content, notices...)
	if notices != nil {
		res.Details = &details
	}
}

// isDir says whether an entry is a directory or a link to one.
func isDir(dir string, e fs.DirEntry) bool {
	if e.Type()&fs.ModeSymlink == 0 {
		return e.IsDir()
	}
	st, err := os.Stat(filepath.Join(dir, e.Name()))
	return err == nil && st.IsDir()
}

// readDir passes the entries of a directory on, as the system gives them. It never opens anything else, so no
// FIFO is waited for.
func readDir(ctx context.Context, dir string, take func([]fs.DirEntry)) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		some, err := f.ReadDir(batch)
		take(some)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func describe(dir string, err error) error {
	e := &engine.Error{Path: dir, Err: err}
	_, missing := os.Stat(dir)
	switch {
	case errors.Is(err, syscall.ENOTDIR) && missing == nil:
		e.Reason, e.Message = engine.NotADirectory, "Not a directory: "+dir
	case errors.Is(err, syscall.ENOTDIR), errors.Is(err, fs.ErrNotExist):
		e.Reason, e.Message = engine.FileNotFound, "Path not found: "+dir
	default:
		return engine.SystemError("list", dir, err)
	}
	return e
}
