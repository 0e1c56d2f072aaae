package edit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
	"github.com/rigbridge/rigbridge/controllers/engine/textdiff"
)

// MaxFileSize is the size in bytes of the largest file that can be edited.
const MaxFileSize = 32 << 20

// Edit is one replacement.
type Edit struct {
	// OldText is what is replaced; it occurs exactly once in the file.
	OldText string `json:"oldText"`
	// NewText takes its place, literally but for the line ends.
	NewText string `json:"newText"`
}

// Args are the arguments of one call.
type Args struct {
	// Path names the file; relative to the working directory, "~/" is the home directory.
	Path string `json:"path"`
	// ExpectedRevision is what read returned.
	ExpectedRevision string `json:"expected_revision"`
	// Edits all refer to the file as it is before the call.
	Edits []Edit `json:"edits"`
}

// Details is the metadata of an edit that succeeded.
type Details struct {
	// Diff shows the changed lines with numbers, Patch as a unified patch. Both are of the text with LF line ends.
	Diff  string `json:"diff"`
	Patch string `json:"patch"`
	// FirstChangedLine is its number in the new text, from 1.
	FirstChangedLine int `json:"firstChangedLine"`
	// Normalized lists the edits, by index from 0, whose oldText was found only in normalised form.
	Normalized []int `json:"normalized,omitempty"`
}

// Prepare finds and applies the edits in memory, without any effect. Errors: InvalidEdit, TextNotFound,
// TextAmbiguous, EditsOverlap, NoChange, UnsupportedEncoding, FileTooLarge, FileNotFound, IsADirectory,
// UnsupportedFile, PermissionDenied, RevisionConflict, InvalidPath and those of the system.
func Prepare(ctx context.Context, env engine.Env, a Args) (*replace.Plan, error) {
	if len(a.Edits) == 0 {
		return nil, engine.Errorf(engine.InvalidEdit, "Edit tool input is invalid. edits must contain at least one replacement.")
	}
	path, err := env.ResolvePath(a.Path)
	if err != nil {
		return nil, err
	}
	if path, err = engine.Canonical(path); err != nil {
		return nil, err
	}
	content, target, err := load(ctx, path, a.ExpectedRevision)
	if err != nil {
		return nil, err
	}
	d := newDocument(path, content)
	if err := d.check(a.Edits); err != nil {
		return nil, err
	}
	matches, err := d.locate(ctx, a.Edits)
	if err != nil {
		return nil, err
	}
	after, err := d.apply(matches)
	if err != nil {
		return nil, err
	}
	if bytes.Equal(after.content, content) {
		return nil, d.noChange(matches)
	}
	return replace.New(target, after.content, d.result(matches, after)), nil
}

// load reads the target and demands its revision.
func load(ctx context.Context, path, expected string) ([]byte, replace.Target, error) {
	var content bytes.Buffer
	target, err := replace.Look(ctx, path, MaxFileSize, &content)
	if err != nil {
		return nil, target, inaccessible(path, err)
	}
	if err := target.Demand(expected); err != nil {
		return nil, target, err
	}
	if target.Revision == replace.Missing {
		return nil, target, &engine.Error{Reason: engine.FileNotFound, Path: path, Err: syscall.ENOENT,
			Message: "Could not edit file: " + path + ". Error code: ENOENT.\nThe file does not exist. " +
				"Check the path with ls or find, or create the file with write."}
	}
	return content.Bytes(), target, nil
}

// inaccessible puts the sentence of the edit tool in front of a refusal by the system.
func inaccessible(path string, err error) error {
	var e *engine.Error
	var errno syscall.Errno
	if !errors.As(err, &e) || !errors.As(err, &errno) {
		return err
	}
	named := *e
	named.Message = fmt.Sprintf("Could not edit file: %s. Error code: %s.\n%s", path, unix.ErrnoName(errno), e.Message)
	return &named
}

// result says what was done.
func (d *document) result(matches []match, after outcome) *engine.Result {
	diff := textdiff.Compare(string(d.lf.text), string(after.view))
	details := Details{Diff: diff.Display(), Patch: diff.Patch(d.path), FirstChangedLine: diff.FirstChangedLine()}
	r := &engine.Result{Text: fmt.Sprintf("Successfully replaced %d block(s) in %s.", len(matches), d.path)}
	var names []string
	for i := range d.edits {
		if d.normalised[i] {
			details.Normalized = append(details.Normalized, i)
			names = append(names, fmt.Sprintf("edits[%d]", i))
		}
	}
	if len(names) > 0 {
		subject := ""
		if len(d.edits) > 1 {
			subject = strings.Join(names, " and ") + " "
		}
		replace.Note(r, "("+subject+"matched after normalising quotes, dashes, blanks or compatibility characters; "+
			"only the matched range was replaced, check the diff)")
	}
	r.Details = details
	return r
}
