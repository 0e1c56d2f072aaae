// Package enginetest runs the golden vectors of controllers/engine/testdata/golden against an
// implementation: an engine called directly or a running daemon.
package enginetest

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"image"
	_ "image/gif"  // decoders for comparing image blocks
	_ "image/jpeg" // decoders for comparing image blocks
	_ "image/png"  // decoders for comparing image blocks
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"runtime"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"testing"

	_ "golang.org/x/image/webp" // decoder for comparing image blocks
)

// Case is one golden vector; testdata/golden/README.md describes the fields.
type Case struct {
	ID      string            `json:"id"`
	Tool    string            `json:"tool"`
	Title   string            `json:"title"`
	Tags    []string          `json:"tags"`
	Via     string            `json:"via"`
	Fn      string            `json:"fn"`
	Compare string            `json:"compare"`
	Cwd     string            `json:"cwd"`
	Env     map[string]string `json:"env"`
	Control struct {
		AbortAfterMS int `json:"abort_after_ms"`
		SettleMS     int `json:"settle_ms"`
		MaxElapsedMS int `json:"max_elapsed_ms"`
	} `json:"control"`
	Files    []Fixture       `json:"files"`
	Args     json.RawMessage `json:"args"`
	Expected Expected        `json:"expected"`
	Quirk    bool            `json:"quirk"`
	Better   *Better         `json:"better"`
	Other    json.RawMessage `json:"other_tool_versions"`
	Note     string          `json:"note"`
}

// Fixture is one file, directory, link or FIFO to make before the run.
type Fixture struct {
	Path       string          `json:"path"`
	PathBase64 string          `json:"pathBase64"`
	Text       *string         `json:"text"`
	Base64     *string         `json:"base64"`
	Gen        json.RawMessage `json:"gen"`
	Dir        bool            `json:"dir"`
	Symlink    *string         `json:"symlink"`
	FIFO       bool            `json:"fifo"`
	SparseSize *int64          `json:"sparse_size"`
	Mode       string          `json:"mode"`
	Many       *struct {
		From, To int
		Format   string
		Text     string
	} `json:"many"`
}

// Expected is the outcome of a case.
type Expected struct {
	IsError        bool                       `json:"isError"`
	Content        []Block                    `json:"content"`
	Structured     map[string]json.RawMessage `json:"structured"`
	FilesChanged   []Change                   `json:"files_changed"`
	FullOutputFile json.RawMessage            `json:"full_output_file"`
	Result         json.RawMessage            `json:"result"`
}

// Better overrides the named parts of Expected.
type Better struct {
	IsError        *bool                      `json:"isError"`
	Content        []Block                    `json:"content"`
	Structured     map[string]json.RawMessage `json:"structured"`
	FilesChanged   []Change                   `json:"files_changed"`
	FullOutputFile json.RawMessage            `json:"full_output_file"`
	Note           string                     `json:"note"`
}

// Block is an expected content block.
type Block struct {
	Type     string          `json:"type"`
	Text     json.RawMessage `json:"text"`
	Regex    string          `json:"regex"`
	Subset   *Subset         `json:"subset"`
	MimeType string          `json:"mimeType"`
	SameAs   string          `json:"same_bytes_as"`
	SHA256   string          `json:"sha256"`
	Size     int             `json:"size"`
	Width    int             `json:"width"`
	Height   int             `json:"height"`
}

// Subset expects Count different lines out of Universe, then Suffix.
type Subset struct {
	Count    int             `json:"count"`
	Universe json.RawMessage `json:"universe"`
	Suffix   string          `json:"suffix"`
}

// Change is an expected difference in the file system.
type Change struct {
	Path    string  `json:"path"`
	SHA256  string  `json:"sha256"`
	Size    int64   `json:"size"`
	Mode    string  `json:"mode"`
	Symlink *string `json:"symlink"`
	Dir     bool    `json:"dir"`
	Deleted bool    `json:"deleted"`
}

// Got is what the implementation under test answered. Structured is compared key by key with the vector's.
type Got struct {
	IsError    bool
	Text       string
	Images     []GotImage
	Structured map[string]any
	// FullOutputPath is the file named in the notice, if any.
	FullOutputPath string
}

// GotImage is one image block of an answer.
type GotImage struct {
	MimeType string
	Data     []byte
}

// World is the set of fresh directories of one case.
type World struct {
	Root, Cwd, Home, Tmp string
	before               map[string]entry
}

type entry struct {
	kind, sum, mode, link string
}

// Dir returns the directory of the vectors.
func Dir() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Join(filepath.Dir(file), "..", "testdata", "golden")
}

// Load reads the cases of one tool, sorted by id. It fails the test if there are none.
func Load(t *testing.T, tool string) []Case {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Dir(), tool, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no vectors for %s: %v", tool, err)
	}
	sort.Strings(files)
	cases := make([]Case, 0, len(files))
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		var c Case
		if err := json.Unmarshal(b, &c); err != nil {
			t.Fatalf("%s: %v", f, err)
		}
		cases = append(cases, c)
	}
	return cases
}

// HasTag says whether the case carries the tag.
func (c Case) HasTag(tag string) bool {
	for _, t := range c.Tags {
		if t == tag {
			return true
		}
	}
	return false
}

// Setup makes the case's files below a fresh root with umask 022.
func (c Case) Setup(t *testing.T) *World {
	t.Helper()
	root, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	w := &World{Root: root, Cwd: filepath.Join(root, "cwd"), Home: filepath.Join(root, "home"), Tmp: filepath.Join(root, "tmp")}
	for _, d := range []string{w.Cwd, w.Home, w.Tmp} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	type chmod struct {
		path string
		mode fs.FileMode
	}
	var modes []chmod
	for _, f := range c.Files {
		if m := f.Many; m != nil {
			for i := m.From; i <= m.To; i++ {
				n := strconv.Itoa(i)
				w.put(t, w.abs(strings.ReplaceAll(m.Format, "{n}", n)), []byte(strings.ReplaceAll(m.Text, "{n}", n)))
			}
			continue
		}
		path := w.abs(f.Path)
		if f.PathBase64 != "" {
			b, err := base64.StdEncoding.DecodeString(f.PathBase64)
			if err != nil {
				t.Fatal(err)
			}
			path = w.abs(string(b))
		}
		switch {
		case f.Dir:
			must(t, os.MkdirAll(path, 0o755))
		case f.Symlink != nil:
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, os.Symlink(w.Expand(*f.Symlink), path))
		case f.FIFO:
			must(t, os.MkdirAll(filepath.Dir(path), 0o755))
			must(t, syscall.Mkfifo(path, 0o644))
		case f.SparseSize != nil:
			w.put(t, path, nil)
			must(t, os.Truncate(path, *f.SparseSize))
		case f.Base64 != nil:
			b, err := base64.StdEncoding.DecodeString(*f.Base64)
			must(t, err)
			w.put(t, path, b)
		case f.Gen != nil:
			w.put(t, path, []byte(Recipe(t, f.Gen)))
		case f.Text != nil:
			w.put(t, path, []byte(*f.Text))
		default:
			t.Fatalf("%s: unknown fixture %+v", c.ID, f)
		}
		if f.Mode != "" {
			m, err := strconv.ParseUint(f.Mode, 8, 32)
			must(t, err)
			modes = append(modes, chmod{path, fs.FileMode(m)})
		}
	}
	for i := len(modes) - 1; i >= 0; i-- {
		must(t, syscall.Chmod(modes[i].path, uint32(modes[i].mode)))
	}
	w.before = w.snapshot(t)
	return w
}

// WorkDir is the directory that the tool is bound to.
func (c Case) WorkDir(w *World) string { return filepath.Join(w.Cwd, c.Cwd) }

// Arguments returns the arguments with recipes and placeholders expanded.
func (c Case) Arguments(t *testing.T, w *World) map[string]any {
	t.Helper()
	var v any
	must(t, json.Unmarshal(c.Args, &v))
	m, _ := w.expandAny(t, v).(map[string]any)
	return m
}

// Recipe expands a text recipe.
func Recipe(t *testing.T, raw json.RawMessage) string {
	t.Helper()
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var r struct {
		Base64 *string           `json:"base64"`
		Repeat []json.RawMessage `json:"repeat"`
		Seq    *struct {
			From, To int
			Format   *string
			Sep      *string
		} `json:"seq"`
		Concat []json.RawMessage `json:"concat"`
	}
	must(t, json.Unmarshal(raw, &r))
	switch {
	case r.Base64 != nil:
		b, err := base64.StdEncoding.DecodeString(*r.Base64)
		must(t, err)
		return string(b)
	case r.Repeat != nil:
		var n int
		must(t, json.Unmarshal(r.Repeat[1], &n))
		return strings.Repeat(Recipe(t, r.Repeat[0]), n)
	case r.Seq != nil:
		format, sep := "{n}", "\n"
		if r.Seq.Format != nil {
			format = *r.Seq.Format
		}
		if r.Seq.Sep != nil {
			sep = *r.Seq.Sep
		}
		var b strings.Builder
		for i := r.Seq.From; i <= r.Seq.To; i++ {
			if i > r.Seq.From {
				b.WriteString(sep)
			}
			b.WriteString(strings.ReplaceAll(format, "{n}", strconv.Itoa(i)))
		}
		return b.String()
	case r.Concat != nil:
		var b strings.Builder
		for _, part := range r.Concat {
			b.WriteString(Recipe(t, part))
		}
		return b.String()
	}
	t.Fatalf("unknown recipe %s", raw)
	return ""
}

// Expand replaces the placeholders of a vector.
func (w *World) Expand(s string) string {
	return strings.NewReplacer("${CWD_BASE}", "cwd", "${CWD}", w.Cwd, "${HOME}", w.Home, "${TMP}", w.Tmp, "${ROOT}", w.Root).Replace(s)
}

var hex16 = regexp.MustCompile(`(pi-bash-)[0-9a-f]{16}(\.log)`)

// Collapse puts placeholders back into a text of the result.
func (w *World) Collapse(s string) string {
	s = strings.NewReplacer(w.Cwd, "${CWD}", w.Home, "${HOME}", w.Tmp, "${TMP}", w.Root, "${ROOT}").Replace(s)
	return hex16.ReplaceAllString(s, "$1$${HEX16}$2")
}

// Revision returns the revision of a file, or "missing".
func Revision(path string) string {
	b, err := os.ReadFile(path)
	if err != nil {
		return "missing"
	}
	return "sha256:" + sum(b)
}

// Check compares an answer with the case. For a quirk the better value binds; the reference value is
// accepted only where better says nothing.
func (c Case) Check(t *testing.T, w *World, got Got) {
	t.Helper()
	want := c.Expected
	loose := false // better leaves the wording open
	if c.Quirk && c.Better != nil {
		b := c.Better
		loose = b.Note != ""
		if b.IsError != nil {
			want.IsError = *b.IsError
		}
		want.Content, want.Structured = b.Content, b.Structured
		if b.FilesChanged != nil {
			want.FilesChanged = b.FilesChanged
		}
		if b.IsError == nil && b.Content == nil && b.Structured == nil && b.FilesChanged == nil {
			loose = true
			want.FilesChanged = nil
		}
		want.FullOutputFile = b.FullOutputFile
		if b.IsError == nil && loose {
			want.IsError = got.IsError
		}
	}
	if got.IsError != want.IsError {
		t.Errorf("isError = %v, want %v; text: %s", got.IsError, want.IsError, clip(got.Text))
	}
	if c.Compare != "error-only" && !loose {
		c.checkContent(t, w, got, want.Content)
	}
	if !loose {
		c.checkStructured(t, w, got, want.Structured)
	}
	if want.FilesChanged != nil {
		w.checkChanges(t, want.FilesChanged)
	}
	c.checkFullOutput(t, w, got, want.FullOutputFile)
}

func (c Case) checkContent(t *testing.T, w *World, got Got, want []Block) {
	t.Helper()
	text := w.Collapse(got.Text)
	images := 0
	for _, b := range want {
		switch {
		case b.Type == "image":
			if images >= len(got.Images) {
				t.Errorf("image block %d is missing", images)
				return
			}
			checkImage(t, w, b, got.Images[images])
			images++
		case b.Regex != "":
			if !regexp.MustCompile(`^(?s:` + b.Regex + `)$`).MatchString(text) {
				t.Errorf("text does not match %s:\n%s", b.Regex, clip(text))
			}
		case b.Subset != nil:
			checkSubset(t, b.Subset, text)
		case b.Text != nil:
			c.checkText(t, b.Text, text)
		}
	}
	if len(got.Images) != images {
		t.Errorf("%d image blocks, want %d", len(got.Images), images)
	}
}

func (c Case) checkText(t *testing.T, want json.RawMessage, got string) {
	t.Helper()
	if ok, why := textEqual(want, got); !ok {
		if c.Compare == "file-order" {
			var s string
			if json.Unmarshal(want, &s) == nil && sameLines(s, got) {
				return
			}
		}
		t.Errorf("text differs: %s", why)
	}
}

func sameLines(a, b string) bool {
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	sort.Strings(x)
	sort.Strings(y)
	return reflect.DeepEqual(x, y)
}

func textEqual(want json.RawMessage, got string) (bool, string) {
	var s string
	if json.Unmarshal(want, &s) == nil {
		return s == got, fmt.Sprintf("\n got: %q\nwant: %q", clip(got), clip(s))
	}
	var h struct {
		SHA256     string
		Bytes      int
		Head, Tail string
	}
	if err := json.Unmarshal(want, &h); err != nil {
		return false, err.Error()
	}
	return h.SHA256 == sum([]byte(got)), fmt.Sprintf("\n got: %d bytes, tail %q\nwant: %d bytes, tail %q, head %q", len(got), tail(got), h.Bytes, h.Tail, h.Head)
}

func checkSubset(t *testing.T, s *Subset, text string) {
	t.Helper()
	body, ok := strings.CutSuffix(text, s.Suffix)
	if !ok {
		t.Errorf("text does not end with %q: %q", s.Suffix, tail(text))
		return
	}
	universe := map[string]bool{}
	for _, l := range strings.Split(Recipe(t, s.Universe), "\n") {
		universe[l] = true
	}
	lines := strings.Split(strings.TrimSuffix(body, "\n"), "\n")
	seen := map[string]bool{}
	for _, l := range lines {
		if !universe[l] || seen[l] {
			t.Errorf("unexpected or repeated row %q", l)
			return
		}
		seen[l] = true
	}
	if len(seen) != s.Count {
		t.Errorf("%d rows, want %d", len(seen), s.Count)
	}
}

func checkImage(t *testing.T, w *World, want Block, got GotImage) {
	t.Helper()
	if got.MimeType != want.MimeType {
		t.Errorf("image type %q, want %q", got.MimeType, want.MimeType)
	}
	if want.SameAs != "" {
		if sum(got.Data) != want.SHA256 {
			t.Errorf("image bytes differ from %s", want.SameAs)
		}
		return
	}
	cfg, _, err := image.DecodeConfig(bytes.NewReader(got.Data))
	if err != nil {
		t.Errorf("image: %v", err)
		return
	}
	if cfg.Width != want.Width || cfg.Height != want.Height {
		t.Errorf("image is %dx%d, want %dx%d", cfg.Width, cfg.Height, want.Width, want.Height)
	}
}

// freeStructured lists keys whose difference from the reference is on purpose (CONTRACT part A and C).
func (c Case) checkStructured(t *testing.T, w *World, got Got, want map[string]json.RawMessage) {
	t.Helper()
	for key, raw := range want {
		if key == "effects_may_have_occurred" {
			continue // true only where effects may have occurred; the reference always says true
		}
		if key == "message" && c.Compare == "error-only" {
			continue // the wording is free, here as in the content
		}
		var wantV any
		must(t, json.Unmarshal(raw, &wantV))
		b, err := json.Marshal(got.Structured[key])
		must(t, err)
		var gotV any
		must(t, json.Unmarshal([]byte(w.Collapse(string(b))), &gotV))
		if key == "details" && got.IsError {
			if _, has := got.Structured[key]; !has {
				continue
			}
		}
		if why := differs(wantV, gotV, key); why != "" {
			t.Errorf("structured.%s", why)
		}
	}
}

func differs(want, got any, at string) string {
	switch wv := want.(type) {
	case map[string]any:
		if _, isHash := wv["sha256"]; isHash {
			raw, _ := json.Marshal(wv)
			s, _ := got.(string)
			if ok, why := textEqual(raw, s); !ok {
				return at + ": " + why
			}
			return ""
		}
		gv, _ := got.(map[string]any)
		for k, x := range wv {
			if k == "content" && strings.HasSuffix(at, "truncation") {
				continue // left out on purpose
			}
			if s, _ := x.(string); s == "${SHOWN_ROWS}" {
				continue
			}
			if why := differs(x, gv[k], at+"."+k); why != "" {
				return why
			}
		}
		return ""
	default:
		if !reflect.DeepEqual(want, got) {
			return fmt.Sprintf("%s = %v, want %v", at, clip(fmt.Sprint(got)), clip(fmt.Sprint(want)))
		}
		return ""
	}
}

func (c Case) checkFullOutput(t *testing.T, w *World, got Got, want json.RawMessage) {
	t.Helper()
	if len(want) == 0 || string(want) == "null" {
		return
	}
	if got.FullOutputPath == "" {
		t.Error("no full-output file was named")
		return
	}
	var f struct {
		SHA256 string
		Size   int
	}
	must(t, json.Unmarshal(want, &f))
	b, err := os.ReadFile(got.FullOutputPath)
	must(t, err)
	if f.SHA256 != "" && f.SHA256 != sum(b) {
		t.Errorf("full-output file: %d bytes, digest differs; want %d bytes", len(b), f.Size)
	}
	st, err := os.Stat(got.FullOutputPath)
	must(t, err)
	if st.Mode().Perm()&0o077 != 0 {
		t.Errorf("full-output file has mode %v; it must be the owner's alone", st.Mode())
	}
}

func (w *World) checkChanges(t *testing.T, want []Change) {
	t.Helper()
	after := w.snapshot(t)
	seen := map[string]bool{}
	for _, c := range want {
		path := w.abs(c.Path)
		seen[path] = true
		e, exists := after[path]
		switch {
		case c.Deleted:
			if exists {
				t.Errorf("%s still exists", c.Path)
			}
		case !exists:
			t.Errorf("%s does not exist", c.Path)
		case c.Dir:
			if e.kind != "dir" {
				t.Errorf("%s is a %s, want a directory", c.Path, e.kind)
			}
		case c.Symlink != nil:
			if e.link != w.Expand(*c.Symlink) {
				t.Errorf("%s links to %q, want %q", c.Path, e.link, *c.Symlink)
			}
		default:
			if c.SHA256 != "" && e.sum != c.SHA256 {
				b, _ := os.ReadFile(path)
				t.Errorf("%s has other bytes than expected: %q", c.Path, clip(string(b)))
			}
			_, existed := w.before[path]
			if c.Mode != "" && e.mode != c.Mode && (existed || c.Mode != "0600") {
				t.Errorf("%s has mode %s, want %s", c.Path, e.mode, c.Mode)
			}
		}
	}
	for path, e := range after {
		if !seen[path] && w.before[path] != e {
			t.Errorf("unexpected change: %s", w.Collapse(path))
		}
	}
	for path := range w.before {
		if _, ok := after[path]; !ok && !seen[path] {
			t.Errorf("unexpectedly gone: %s", w.Collapse(path))
		}
	}
}

// snapshot records what lies below the root, the temporary directory aside.
func (w *World) snapshot(t *testing.T) map[string]entry {
	t.Helper()
	out := map[string]entry{}
	must(t, filepath.WalkDir(w.Root, func(path string, d fs.DirEntry, err error) error {
		if path == w.Tmp {
			return fs.SkipDir
		}
		if err != nil || path == w.Root || path == w.Cwd || path == w.Home {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return nil
		}
		st := info.Sys().(*syscall.Stat_t)
		e := entry{mode: fmt.Sprintf("%04o", st.Mode&0o7777)}
		switch {
		case d.IsDir():
			e.kind = "dir"
		case d.Type()&fs.ModeSymlink != 0:
			e.kind, e.mode = "symlink", ""
			e.link, _ = os.Readlink(path)
		case d.Type().IsRegular() && st.Size < 64<<20:
			e.kind = "file"
			b, _ := os.ReadFile(path)
			e.sum = sum(b)
		default:
			e.kind = d.Type().String()
		}
		out[path] = e
		return nil
	}))
	return out
}

func (w *World) abs(path string) string {
	path = w.Expand(path)
	if !filepath.IsAbs(path) {
		path = w.Cwd + "/" + path
	}
	return path
}

func (w *World) put(t *testing.T, path string, b []byte) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, b, 0o644))
}

func (w *World) expandAny(t *testing.T, v any) any {
	switch v := v.(type) {
	case string:
		return w.Expand(v)
	case []any:
		for i := range v {
			v[i] = w.expandAny(t, v[i])
		}
		return v
	case map[string]any:
		if r, ok := v["$text"]; ok && len(v) == 1 {
			raw, err := json.Marshal(r)
			must(t, err)
			return w.Expand(Recipe(t, raw))
		}
		for k := range v {
			v[k] = w.expandAny(t, v[k])
		}
		return v
	}
	return v
}

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func clip(s string) string {
	if len(s) > 1200 {
		return s[:600] + " … " + s[len(s)-600:]
	}
	return s
}

func tail(s string) string {
	if len(s) > 300 {
		return s[len(s)-300:]
	}
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
