package replace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

const (
	tempPrefix = ".rig-bridge-"
	tempSuffix = ".tmp"
)

// Plan is a replacement that has been computed and not been done. It is used once.
type Plan struct {
	// Path is the canonical target; the caller locks it.
	Path string
	// Before is the revision that the target must have, After the one it will have.
	Before, After string
	// Result is what the call answers on success.
	Result *engine.Result
	// Sync brings a file or a directory to the disk; nil means (*os.File).Sync.
	Sync func(*os.File) error
	// Reached, if not nil, is told of each step of Commit by name; tests of crashes end the process there.
	Reached func(step string)

	content []byte
}

// New plans to replace the target by content. It fills in the path, the revision and the changed paths of the
// result, and adds a note if the target has more names than one.
func New(t Target, content []byte, result *engine.Result) *Plan {
	after := RevisionOf(content)
	result.Path, result.Revision, result.ChangedPaths = t.Path, after, []string{t.Path}
	if t.Links > 1 {
		Note(result, fmt.Sprintf("The file had %d hard links: this name now holds a file of its own, the other names keep the old content.", t.Links))
	}
	return &Plan{Path: t.Path, Before: t.Revision, After: after, Result: result, content: content}
}

// Content is what the target will hold. It must not be changed.
func (p *Plan) Content() []byte { return p.content }

// Note adds a sentence to the text of a result, on a line of its own.
func Note(result *engine.Result, sentence string) { result.Text += "\n" + sentence }

// TempPath names the temporary file of an attempt, which lies beside the target.
func (p *Plan) TempPath(attempt string) string {
	return filepath.Join(filepath.Dir(p.Path), tempPrefix+attempt+tempSuffix)
}

// Commit replaces the target. The attempt is a UUID that the caller has recorded. An error has
// EffectsMayHaveOccurred set only if the target may have been replaced nevertheless.
func (p *Plan) Commit(ctx context.Context, attempt string) (*engine.Result, error) {
	if attempt == "" || filepath.Base(attempt) != attempt {
		return nil, fmt.Errorf("replace %s: %q is not the id of an attempt", p.Path, attempt)
	}
	made, err := makeParents(filepath.Dir(p.Path))
	if err == nil {
		err = p.replace(ctx, p.TempPath(attempt))
	}
	var failed *engine.Error
	if errors.As(err, &failed) && failed.EffectsMayHaveOccurred {
		return nil, err
	}
	if err != nil {
		removeEmpty(made)
		return nil, err
	}
	if err := p.syncDirectories(made); err != nil {
		return nil, uncertain(p.Path, err)
	}
	return p.Result, nil
}

// replace does what can be undone, and the rename as the last step.
func (p *Plan) replace(ctx context.Context, temp string) error {
	if err := p.fill(ctx, temp); err != nil {
		return engine.SystemError("write", p.Path, err)
	}
	p.reached("temp-written")
	err := p.recheck(ctx)
	if err == nil {
		p.reached("before-rename")
		if err = p.rename(temp); err == nil {
			p.reached("renamed")
			return nil
		}
		if _, gone := os.Lstat(temp); errors.Is(gone, fs.ErrNotExist) {
			return uncertain(p.Path, err)
		}
	}
	os.Remove(temp) //nolint:errcheck // the first error counts; the start-up sweep tries again
	return engine.SystemError("replace", p.Path, err)
}

// fill makes the temporary file with the new bytes and the attributes of the old file.
func (p *Plan) fill(ctx context.Context, temp string) (err error) {
	mode := fs.FileMode(0o666) // the kernel takes the umask off
	if p.Before != Missing {
		mode = 0o600 // nobody else reads it until it has the right owner and mode
	}
	f, err := os.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW|unix.O_NONBLOCK, mode) // O_NONBLOCK: or package os tries to set it
	if err != nil {
		return engine.SystemError("make a temporary file beside", p.Path, err)
	}
	defer func() {
		if err != nil {
			f.Close()
			os.Remove(temp) //nolint:errcheck // the first error counts; the start-up sweep tries again
		}
	}()
	for rest := p.content; len(rest) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := f.Write(rest[:min(len(rest), 1<<20)])
		if err != nil {
			return fmt.Errorf("write temporary file: %w", err)
		}
		rest = rest[n:]
	}
	if p.Before != Missing {
		if err := keepAttributes(p.Path, f); err != nil {
			return fmt.Errorf("keep attributes: %w", err)
		}
	}
	if err := p.sync(f); err != nil {
		return fmt.Errorf("sync temporary file: %w", err)
	}
	return f.Close()
}

// recheck makes sure that the target is still what the plan was made from.
func (p *Plan) recheck(ctx context.Context) error {
	now, err := Revision(p.Path)
	if err != nil {
		return err
	}
	if now != p.Before {
		return conflict(p.Path, p.Before, now)
	}
	return ctx.Err()
}

// rename puts the temporary file in place. A new file never replaces one that has come up meanwhile.
func (p *Plan) rename(temp string) error {
	if p.Before == Missing {
		err := renameToNew(temp, p.Path)
		if errors.Is(err, unix.EEXIST) {
			now, rerr := Revision(p.Path)
			if rerr != nil {
				return rerr
			}
			return conflict(p.Path, p.Before, now)
		}
		if !errors.Is(err, unix.ENOSYS) && !errors.Is(err, unix.EINVAL) && !errors.Is(err, unix.ENOTSUP) { // some file systems lack it
			return err
		}
	}
	return os.Rename(temp, p.Path)
}

// syncDirectories makes the new name durable, and the names of folders made for it. A folder that the account may write
// and not read cannot be opened for that; its file system then decides when the name is durable.
func (p *Plan) syncDirectories(made []string) error {
	dirs := []string{filepath.Dir(p.Path)}
	for _, d := range made {
		dirs = append(dirs, filepath.Dir(d))
	}
	for _, d := range dirs {
		if err := syncing.sync(d, func() error { return p.syncDirectory(d) }); err != nil {
			return err
		}
	}
	return nil
}

// syncing are the folders that are synced in this process.
var syncing folders

func (p *Plan) syncDirectory(dir string) error {
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NONBLOCK, 0)
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("open folder: %w", err)
	}
	err = p.sync(f)
	f.Close()
	if err != nil && !errors.Is(err, unix.EINVAL) { // some file systems cannot sync a folder
		return fmt.Errorf("sync folder: %w", err)
	}
	return nil
}

func (p *Plan) reached(step string) {
	if p.Reached != nil {
		p.Reached(step)
	}
}

func (p *Plan) sync(f *os.File) error {
	if p.Sync != nil {
		return p.Sync(f)
	}
	return f.Sync()
}

func uncertain(path string, err error) error {
	return &engine.Error{Reason: engine.InputOutput, Path: path, EffectsMayHaveOccurred: true, Err: err,
		Message: "The file " + path + " may have been replaced, but the system reported an error afterwards. " +
			"Read it to see which content it has."}
}

// makeParents makes the missing folders above the target and returns them, the outermost first.
func makeParents(dir string) (made []string, err error) {
	var missing []string
	for d := dir; ; d = filepath.Dir(d) {
		if _, err := os.Stat(d); !errors.Is(err, fs.ErrNotExist) || d == filepath.Dir(d) {
			break
		}
		missing = append(missing, d)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		err := os.Mkdir(missing[i], 0o777)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return made, engine.SystemError("make the folder", missing[i], err)
		}
		if err == nil {
			made = append(made, missing[i])
		}
	}
	return made, nil
}

func removeEmpty(made []string) {
	for i := len(made) - 1; i >= 0; i-- {
		os.Remove(made[i]) //nolint:errcheck // a folder that somebody else uses by now stays
	}
}

// Sweep removes the temporary file of an attempt that was killed. Any other name is left alone.
func Sweep(tempPath string) {
	base := filepath.Base(tempPath)
	if !strings.HasPrefix(base, tempPrefix) || !strings.HasSuffix(base, tempSuffix) {
		return
	}
	if st, err := os.Lstat(tempPath); err == nil && st.Mode().IsRegular() {
		os.Remove(tempPath) //nolint:errcheck // nothing depends on it
	}
}

// Verdict says what a file holds after a crash.
type Verdict string

// The verdicts of Decide.
const (
	// Planned: the replacement has happened.
	Planned Verdict = "Planned"
	// Expected: the replacement has not happened; it can be done now.
	Expected Verdict = "Expected"
	// Other: somebody else has changed the file, before or after.
	Other Verdict = "Other"
)

// Decide compares the file with the planned and the expected revision of an attempt that was cut off. If both
// are the same the answer is Planned. With an error the verdict is Other.
func Decide(path, planned, expected string) (Verdict, error) {
	now, err := Revision(path)
	switch {
	case err != nil:
		return Other, err
	case now == planned:
		return Planned, nil
	case now == expected:
		return Expected, nil
	}
	return Other, nil
}
