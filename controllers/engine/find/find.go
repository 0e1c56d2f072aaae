package find

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/ignore"
	"github.com/rigbridge/rigbridge/controllers/engine/walk"
)

// DefaultLimit is the number of results when none is asked for.
const DefaultLimit = 1000

// Budget is how long one search may take before it answers with what it has. Tests may change it.
var Budget = 20 * time.Second

const (
	// secondLook bounds the search among ignored files.
	secondLook = time.Second
	// maxHidden bounds the ignored entries that are remembered for it.
	maxHidden = 4096
	// maxNamed is the number of ignored matches that a notice names.
	maxNamed = 3
)

const nothing = "No files found matching pattern"

// Args are the arguments of one call.
type Args struct {
	// Pattern is the glob.
	Pattern string
	// Path is the directory to search; empty means the working directory.
	Path string
	// Limit is the largest number of results, 0 for DefaultLimit.
	Limit int
}

// Details is the metadata of a result that was cut.
type Details struct {
	ResultLimitReached int                `json:"resultLimitReached,omitempty"`
	Truncation         *engine.Truncation `json:"truncation,omitempty"`
	// Incomplete is set when the time ran out.
	Incomplete bool `json:"incomplete,omitempty"`
}

// Run searches. It fails with FileNotFound, NotADirectory or PermissionDenied for the path, InvalidPattern for
// the pattern, and Cancelled.
func Run(ctx context.Context, env engine.Env, a Args) (*engine.Result, error) {
	s, err := newSearch(env, a)
	if err != nil {
		return nil, err
	}
	found := walk.Outcome[string]{}
	if data, ok := s.startAt(); ok {
		scope := ignore.ForRoot(s.root, ignore.Config{Own: ".fdignore", Home: env.Home, ConfigHome: env.ConfigHome,
			Account: filepath.Join(env.ConfigHome, "fd", "ignore")})
		found, err = walk.Run(ctx, []walk.Seed{{Dir: walk.NewRoot(s.root, scope, data)}}, s.matcher, s.options)
		if err != nil {
			return nil, engine.SystemError("search", s.path, err)
		}
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
	matcher *matcher
	path    string // as asked for, absolute
	root    string // the same with links resolved
	limit   int
	options walk.Options
}

func newSearch(env engine.Env, a Args) (*search, error) {
	m, err := compile(a.Pattern)
	if err != nil {
		return nil, err
	}
	s := &search{matcher: m, path: env.Cwd, limit: DefaultLimit}
	if a.Path != "" {
		if s.path, err = env.ResolveExisting(a.Path); err != nil {
			return nil, err
		}
	}
	if a.Limit != 0 {
		s.limit = max(1, a.Limit)
	}
	if s.root, err = directory(s.path); err != nil {
		return nil, err
	}
	s.options = walk.Options{Limit: s.limit, Budget: Budget, Git: m.git || walk.InGit(s.root)}
	if m.paths != nil || m.literal != "" {
		s.options.Hidden = maxHidden
	}
	return s, nil
}

// directory resolves links and makes sure that there is a directory to search.
func directory(path string) (string, error) {
	st, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return "", &engine.Error{Reason: engine.FileNotFound, Path: path, Err: err,
			Message: fmt.Sprintf("Search path not found: %s. Check it with ls.", path)}
	}
	if err != nil {
		return "", engine.SystemError("search", path, err)
	}
	if !st.IsDir() {
		return "", &engine.Error{Reason: engine.NotADirectory, Path: path,
			Message: fmt.Sprintf("Search path is not a directory: %s. Give its parent directory.", path)}
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", engine.SystemError("search", path, err)
	}
	return real, nil
}

// startAt is the matcher's state at the root, by the name that was asked for or by the true one.
func (s *search) startAt() (any, bool) {
	if data, ok := s.matcher.start(s.path); ok {
		return data, true
	}
	return s.matcher.start(s.root)
}

// hiddenMatches are matches that ignore files hide.
type hiddenMatches struct {
	rows []string
	more bool // the look was cut short
}

// ignored takes a second look, short in time, at what ignore files hid: when nothing else was found, or for
// the one path that the pattern spells out.
func (s *search) ignored(ctx context.Context, found walk.Outcome[string]) (hiddenMatches, error) {
	var h hiddenMatches
	if len(found.Hidden) == 0 || found.TimedOut {
		return h, nil
	}
	if len(found.Results) > 0 {
		rel := s.matcher.literal
		if !strings.Contains(rel, "/") || s.matcher.absolute || slices.Contains(found.Results, rel) {
			return h, nil
		}
		if _, err := os.Lstat(filepath.Join(s.root, rel)); err == nil && filepath.IsLocal(rel) {
			h.rows = []string{rel}
		}
		return h, nil
	}
	again, err := walk.Run(ctx, found.Hidden, s.matcher, walk.Options{Limit: s.limit, Budget: secondLook, Git: s.options.Git})
	if err != nil {
		return h, err
	}
	h.rows = again.Results
	h.more = again.TimedOut || len(again.Results) > s.limit || len(found.Hidden) == maxHidden
	return h, nil
}

func (h hiddenMatches) notice() string {
	names := make([]string, 0, maxNamed)
	for _, r := range h.rows[:min(len(h.rows), maxNamed)] {
		names = append(names, walk.Display(r))
	}
	count, noun, dots := fmt.Sprint(len(h.rows)), "matches", ""
	if h.more {
		count = "at least " + count
	}
	if len(h.rows) == 1 {
		noun = "match"
	}
	if len(h.rows) > maxNamed {
		dots = ", …"
	}
	return fmt.Sprintf("%s ignored %s: %s%s", count, noun, strings.Join(names, ", "), dots)
}

func (s *search) render(found walk.Outcome[string], ignored hiddenMatches) *engine.Result {
	rows := found.Results
	var d Details
	var notices []string
	if len(rows) > s.limit {
		rows = rows[:s.limit]
		d.ResultLimitReached = s.limit
		notices = append(notices, fmt.Sprintf("%d results limit reached. Use limit=%d for more, or refine pattern", s.limit, 2*s.limit))
	}
	for i, r := range rows {
		rows[i] = walk.Display(r)
	}
	text := nothing
	if len(rows) > 0 {
		t := engine.TruncateHead(strings.Join(rows, "\n"), engine.NoLineLimit, engine.MaxBytes)
		text = t.Content
		if t.Truncated {
			d.Truncation = &t
			notices = append(notices, engine.FormatSize(engine.MaxBytes)+" limit reached")
		}
	}
	if len(ignored.rows) > 0 {
		notices = append(notices, ignored.notice())
	}
	d.Incomplete = found.TimedOut
	res := &engine.Result{Text: engine.Notices(text, append(notices, found.Shortfalls(s.options)...)...)}
	if d != (Details{}) {
		res.Details = d
	}
	return res
}
