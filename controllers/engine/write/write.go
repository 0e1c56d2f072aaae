// Package write is the write tool: it gives a file new content as a whole.
//
// The content is taken literally: no newline, byte order mark or line ending is added, changed or kept from the
// old file. If the old file had a byte order mark, UTF-16 or CRLF endings that the new content has not, the answer
// says so. Missing folders are made; links are followed and stay; expected_revision guards against changes that the
// caller has not seen. The Operation reconciler calls Prepare and commits the plan.
package write

import (
	"bytes"
	"context"
	"strings"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
)

// Args are the arguments of one call.
type Args struct {
	// Path names the file; relative to the working directory, "~/" is the home directory.
	Path string `json:"path"`
	// Content is the whole new content.
	Content string `json:"content"`
	// ExpectedRevision is what read returned, or "missing" to create the file.
	ExpectedRevision string `json:"expected_revision"`
}

// Prepare computes the replacement without any effect. Errors: InvalidPath, IsADirectory, UnsupportedFile,
// PermissionDenied, RevisionConflict and those of the system.
func Prepare(ctx context.Context, env engine.Env, a Args) (*replace.Plan, error) {
	path, err := env.ResolvePath(a.Path)
	if err != nil {
		return nil, err
	}
	if path, err = engine.Canonical(path); err != nil {
		return nil, err
	}
	var old traits
	target, err := replace.Look(ctx, path, 0, &old)
	if err != nil {
		return nil, err
	}
	if err := target.Demand(a.ExpectedRevision); err != nil {
		return nil, err
	}
	result := &engine.Result{Text: "Successfully wrote to " + path}
	if lost := old.lostIn(a.Content); lost != "" {
		replace.Note(result, "The content was written exactly as given, without the "+lost+" of the old file.")
	}
	return replace.New(target, []byte(a.Content), result), nil
}

// traits watches the bytes of the old file go by for what a rewrite might lose unnoticed.
type traits struct {
	head     []byte
	crlf, lf int
	last     byte
}

// Write never fails.
func (o *traits) Write(b []byte) (int, error) {
	if n := 3 - len(o.head); n > 0 {
		o.head = append(o.head, b[:min(n, len(b))]...)
	}
	if len(b) == 0 {
		return 0, nil
	}
	o.lf += bytes.Count(b, []byte("\n"))
	o.crlf += bytes.Count(b, []byte("\r\n"))
	if o.last == '\r' && b[0] == '\n' {
		o.crlf++
	}
	o.last = b[len(b)-1]
	return len(b), nil
}

// lostIn names what the old file had and the new content has not.
func (o *traits) lostIn(content string) string {
	var lost []string
	switch {
	case bytes.HasPrefix(o.head, []byte("\xef\xbb\xbf")) && !strings.HasPrefix(content, "\ufeff"):
		lost = append(lost, "byte order mark (BOM)")
	case bytes.HasPrefix(o.head, []byte("\xff\xfe")), bytes.HasPrefix(o.head, []byte("\xfe\xff")):
		lost = append(lost, "UTF-16 encoding and byte order mark (BOM)")
	}
	if 2*o.crlf > o.lf && strings.Contains(content, "\n") && !strings.Contains(content, "\r\n") {
		lost = append(lost, "CRLF line endings")
	}
	return strings.Join(lost, " and ")
}
