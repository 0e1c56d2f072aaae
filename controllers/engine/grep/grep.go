package grep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/grep/pattern"
	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
	"github.com/rigbridge/rigbridge/controllers/engine/walk"
)

// DefaultLimit is the number of matching lines when none is asked for.
const DefaultLimit = 100

// Budget is how long one search may take before it answers with what it has. Tests may change it.
var Budget = 20 * time.Second

const (
	// maxContext bounds the rows around a match, as the schema does.
	maxContext = 20
	// batch is the number of files searched as one piece of work.
	batch = 32
	// pseudoSize bounds what is read of one file of a pseudo file system, bytes: such files may never end.
	pseudoSize = 16 << 20
	// secondLook bounds the search among ignored files.
	secondLook = time.Second
	// maxHidden bounds the ignored entries that are remembered for it.
	maxHidden = 4096
	// maxNamed is the number of ignored files that a notice names.
	maxNamed = 3
)

const nothing = "No matches found"

// Args are the arguments of one call.
type Args struct {
	// Pattern is the regular expression, or plain text with Literal.
	Pattern string
	// Path is the file or directory to search; empty means the working directory.
	Path string
	// Glob narrows the files of a directory; it does not apply to a file given as Path.
	Glob string
	// IgnoreCase ignores case.
	IgnoreCase bool
	// Literal takes Pattern as plain text.
	Literal bool
	// Context is the number of rows shown before and after each match.
	Context int
	// Limit is the largest number of matching lines, 0 for DefaultLimit.
	Limit int
}

// Details is the metadata of a result that was cut.
type Details struct {
	MatchLimitReached int                `json:"matchLimitReached,omitempty"`
	Truncation        *engine.Truncation `json:"truncation,omitempty"`
	LinesTruncated    bool               `json:"linesTruncated,omitempty"`
	// Incomplete is set when the time ran out.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Run searches. It fails with FileNotFound, PermissionDenied or UnsupportedFile for the path, InvalidPattern
// for the pattern or the glob, and Cancelled.
func Run(ctx context.Context, env engine.Env, a Args) (*engine.Result, error) {
	s, err := newSearch(env, a)
	if err != nil {
		return nil, err
	}
	found, err := walk.Run(ctx, s.seeds, s.visitor, s.options)
	if err != nil {
		return nil, engine.SystemError("search", s.path, err)
	}
	ignored, err := s.ignored(ctx, found)
	if err != nil {
		return nil, engine.SystemError("search", s.path, err)
	}
	res := s.render(found, ignored)
	if a.Path != "" {
		res.Path = s.path
	}
	return res, nil
}

// search is one call.
type search struct {
	path    string // as asked for, absolute
	name    string // shown for every row if path is a file
	limit   int
	context int
	visitor *visitor
	seeds   []walk.Seed
	options walk.Options
}

func newSearch(env engine.Env, a Args) (*search, error) {
	s := &search{path: env.Cwd, limit: DefaultLimit, context: min(max(0, a.Context), maxContext)}
	var err error
	if a.Path != "" {
		if s.path, err = env.ResolveExisting(a.Path); err != nil {
			return nil, err
		}
	}
	if a.Limit != 0 {
		s.limit = max(1, a.Limit)
	}
	root, isDir, err := target(s.path)
	if err != nil {
		return nil, err
	}
	m, err := pattern.Compile(a.Pattern, pattern.Options{Literal: a.Literal, IgnoreCase: a.IgnoreCase})
	if err != nil {
		return nil, &engine.Error{Reason: engine.InvalidPattern, Err: err,
			Message: fmt.Sprintf("Invalid regular expression %q: %s.", a.Pattern, err)}
	}
	s.visitor = &visitor{matcher: m, rules: rules{context: s.context, most: s.limit + 1, whole: !isDir}}
	if walk.Pseudo(root) {
		s.visitor.rules.size = pseudoSize
	}
	s.options = walk.Options{Limit: s.limit, Budget: Budget, Batch: batch}
	if err := s.begin(env, root, isDir, a.Glob); err != nil {
		return nil, err
	}
	s.visitor.scans = make([]*scan, s.options.WorkerCount())
	return s, nil
}

// begin decides where the walk begins: at a directory with its rules, or at one file.
func (s *search) begin(env engine.Env, root string, isDir bool, glob string) error {
	if !isDir {
		s.options.Workers = 1
		s.name = filepath.Base(s.path)
		dir := walk.NewRoot(filepath.Dir(root), nil, nil)
		s.seeds = []walk.Seed{{Dir: dir, Items: []walk.Item{{Name: filepath.Base(root), Type: walk.File}}}}
		return nil
	}
	var err error
	if s.visitor.filter, err = newFilter(root, glob); err != nil {
		return &engine.Error{Reason: engine.InvalidPattern, Err: err, Message: fmt.Sprintf("Invalid glob %q: %s.", glob, err)}
	}
	if f := s.visitor.filter; f != nil && !f.exclude {
		s.options.Hidden = maxHidden
	}
	s.options.Git = walk.InGit(root)
	scope := ignore.ForRoot(root, ignore.Config{Own: ".rgignore", Home: env.Home, ConfigHome: env.ConfigHome})
	s.seeds = []walk.Seed{{Dir: walk.NewRoot(root, scope, nil)}}
	return nil
}

// target resolves links and makes sure that there is a directory or a readable regular file.
func target(path string) (root string, isDir bool, err error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", false, &engine.Error{Reason: engine.FileNotFound, Path: path, Err: err, Message: "Path not found: " + path}
	}
	if err != nil {
		return "", false, engine.SystemError("search", path, err)
	}
	if !st.IsDir() {
		f, _, err := engine.OpenRegular(path)
		if err != nil {
			return "", false, engine.SystemError("search", path, err)
		}
		f.Close()
	}
	root, err = filepath.EvalSymlinks(path)
	if err != nil {
		return "", false, engine.SystemError("search", path, err)
	}
	return root, st.IsDir(), nil
}

// ignored looks, shortly, into what ignore files hid if a glob asked for certain files and nothing was found.
func (s *search) ignored(ctx context.Context, found walk.Outcome[file]) ([]file, error) {
	if len(found.Hidden) == 0 || len(found.Results) > 0 || found.TimedOut {
		return nil, nil
	}
	o := s.options
	o.Budget, o.Hidden = secondLook, 0
	again, err := walk.Run(ctx, found.Hidden, s.visitor, o)
	return again.Results, err
}

func ignoredNotice(files []file) string {
	matches := 0
	for _, f := range files {
		matches += f.matches
	}
	names := make([]string, 0, maxNamed)
	for _, f := range files[:min(len(files), maxNamed)] {
		names = append(names, walk.Display(f.name))
	}
	noun, dots := "matches", ""
	if matches == 1 {
		noun = "match"
	}
	if len(files) > maxNamed {
		dots = ", …"
	}
	return fmt.Sprintf("%d ignored %s: %s%s", matches, noun, strings.Join(names, ", "), dots)
}

func (s *search) render(found walk.Outcome[file], ignored []file) *engine.Result {
	var d Details
	var notices []string
	body, left := s.body(found.Results, &d)
	if left {
		d.MatchLimitReached = s.limit
		notices = append(notices, fmt.Sprintf("%d matches limit reached. Use limit=%d for more, or refine pattern", s.limit, 2*s.limit))
	}
	text := nothing
	if body != "" {
		t := engine.TruncateHead(body, engine.NoLineLimit, engine.MaxBytes)
		text = t.Content
		if t.Truncated {
			d.Truncation = &t
			notices = append(notices, engine.FormatSize(engine.MaxBytes)+" limit reached")
		}
	}
	if d.LinesTruncated {
		notices = append(notices, fmt.Sprintf("Some lines truncated to %d chars. Use read tool to see full lines", maxUnits))
	}
	if len(ignored) > 0 {
		notices = append(notices, ignoredNotice(ignored))
	}
	notices = append(notices, found.Shortfalls(s.options)...)
	if n := s.visitor.unreadable.Load(); n > 0 {
		notices = append(notices, fmt.Sprintf("incomplete: %d files could not be read", n))
	}
	d.Incomplete = found.TimedOut
	res := &engine.Result{Text: engine.Notices(text, notices...)}
	if d != (Details{}) {
		res.Details = d
	}
	return res
}

// body writes the rows of the first matches up to the limit. left is set if there are more.
func (s *search) body(files []file, d *Details) (text string, left bool) {
	var b []byte
	rest := s.limit
	for _, f := range files {
		if rest == 0 {
			return rowsText(b), true
		}
		rows, left := firstMatches(f, rest, s.context)
		name := walk.Display(cmp.Or(s.name, f.name))
		for _, r := range rows {
			b = append(r.append(b, name), '\n')
			d.LinesTruncated = d.LinesTruncated || r.cut
		}
		if left {
			return rowsText(b), true
		}
		rest -= f.matches
	}
	return rowsText(b), false
}

func rowsText(b []byte) string { return strings.TrimSuffix(string(b), "\n") }

// firstMatches returns the rows of the first n matches of a file with the context behind the last of them, in
// which further matches are plain rows. left is set if the file has more matches.
func firstMatches(f file, n, context int) (rows []row, left bool) {
	if f.matches <= n {
		return f.rows, false
	}
	seen, end := 0, 0
	for _, r := range f.rows {
		if seen == n && r.line > end {
			return rows, true
		}
		if r.match {
			if seen == n {
				r.match = false
			} else if seen++; seen == n {
				end = r.line + context
			}
		}
		rows = append(rows, r)
	}
	return rows, true
}
