package engine_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// TestResolveExisting covers H1: a name that looks the same is found when it is the only one.
func TestResolveExisting(t *testing.T) {
	const (
		nbsp = "\u00a0"
		thin = "\u202f"
		nfc  = "caf\u00e9"
		nfd  = "cafe\u0301"
	)
	cases := []struct {
		name  string
		files []string
		arg   string
		want  string // relative to cwd
	}{
		{"literal", []string{"a.txt"}, "a.txt", "a.txt"},
		{"missing stays literal", nil, "a.txt", "a.txt"},
		{"literal at sign wins", []string{"@a", "a"}, "@a", "@a"},
		{"at sign is dropped", []string{"a"}, "@a", "a"},
		{"at sign and home", []string{"../home/h"}, "@~/h", "../home/h"},
		{"no-break space in the file", []string{"my" + nbsp + "file"}, "my file", "my" + nbsp + "file"},
		{"no-break space in the argument", []string{"my file"}, "my" + nbsp + "file", "my file"},
		{"narrow no-break space", []string{"9.41" + thin + "AM.png"}, "9.41 AM.png", "9.41" + thin + "AM.png"},
		{"exact no-break space wins", []string{"my file", "my" + nbsp + "file"}, "my" + nbsp + "file", "my" + nbsp + "file"},
		{"decomposed file", []string{nfd}, nfc, nfd},
		{"composed file", []string{nfc}, nfd, nfc},
		{"curly apostrophe", []string{"it\u2019s"}, "it's", "it\u2019s"},
		{"all at once", []string{"d\u2019" + nfd + nbsp + "x"}, "@d'" + nfc + " x", "d\u2019" + nfd + nbsp + "x"},
		{"a directory on the way", []string{"my" + nbsp + "dir/" + nfd + "/f"}, "my dir/" + nfc + "/f", "my" + nbsp + "dir/" + nfd + "/f"},
		{"a name that is not UTF-8", []string{"a\xffb"}, "a\ufffdb", "a\xffb"},
		{"case is not folded", []string{"README"}, "readme", "readme"},
		{"below a file", []string{"f"}, "f/x", "f/x"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			env := scratch(t, c.files...)
			got, err := env.ResolveExisting(c.arg)
			if err != nil {
				t.Fatal(err)
			}
			if want := filepath.Join(env.Cwd, c.want); got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		})
	}
}

func TestResolveExistingFileURL(t *testing.T) {
	env := scratch(t, "u r", "p%20q")
	for arg, want := range map[string]string{
		"file://" + env.Cwd + "/u%20r":          filepath.Join(env.Cwd, "u r"),
		"file://localhost" + env.Cwd + "/u%20r": filepath.Join(env.Cwd, "u r"),
		"file://elsewhere" + env.Cwd + "/u%20r": filepath.Join(env.Cwd, "file:/elsewhere"+env.Cwd+"/u%20r"),
		"p%20q":                                 filepath.Join(env.Cwd, "p%20q"),
	} {
		if got, err := env.ResolveExisting(arg); err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", arg, got, err, want)
		}
	}
}

func TestResolveExistingDanglingLinkIsLiteral(t *testing.T) {
	env := scratch(t, "a\u00a0b")
	if err := os.Symlink("nowhere", filepath.Join(env.Cwd, "a b")); err != nil {
		t.Fatal(err)
	}
	if got, err := env.ResolveExisting("a b"); err != nil || got != filepath.Join(env.Cwd, "a b") {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestResolveExistingSeveral(t *testing.T) {
	env := scratch(t, "a\u00a0b", "a\u202fb")
	_, err := env.ResolveExisting("a b")
	var e *engine.Error
	if !errors.As(err, &e) || e.Reason != engine.FileNotFound {
		t.Fatalf("error %v, want FileNotFound", err)
	}
	for _, name := range []string{`"a\u00a0b"`, `"a\u202fb"`} {
		if !strings.Contains(e.Message, name) {
			t.Errorf("message does not name %s: %s", name, e.Message)
		}
	}
}

func TestResolveExistingNUL(t *testing.T) {
	env := scratch(t)
	for _, arg := range []string{"a\x00b", "@a\x00b"} {
		if _, err := env.ResolveExisting(arg); engine.ReasonOf(err) != engine.InvalidPath {
			t.Errorf("%q: %v, want InvalidPath", arg, err)
		}
	}
	if got, err := env.ResolveExisting("file:///a%00b"); err != nil || !strings.HasSuffix(got, "a%00b") {
		t.Errorf("a NUL hidden in a URL: %q, %v, want the literal path", got, err)
	}
}

func TestValidText(t *testing.T) {
	for in, want := range map[string]string{
		"":                         "",
		"plain":                    "plain",
		"\ufeffx":                  "\ufeffx",
		"\xe2\x82":                 "\ufffd",
		"\xe2\x82x":                "\ufffdx",
		"\xed\xa0\x80":             "\ufffd\ufffd\ufffd",
		"\xf0\x9f\x98":             "\ufffd",
		"\xc0\xaf":                 "\ufffd\ufffd",
		"a\xff\xfeb":               "a\ufffd\ufffdb",
		"\xf4\x90\x80\x80":         "\ufffd\ufffd\ufffd\ufffd",
		strings.Repeat("\xff", 99): strings.Repeat("\ufffd", 99),
	} {
		if got := engine.ValidText(in); got != want {
			t.Errorf("%q: got %q, want %q", in, got, want)
		}
	}
}

// scratch makes a home and a working directory beside each other with the given files in the latter.
func scratch(t *testing.T, files ...string) engine.Env {
	t.Helper()
	root := t.TempDir()
	env := engine.Env{Cwd: filepath.Join(root, "cwd"), Home: filepath.Join(root, "home")}
	for _, dir := range []string{env.Cwd, env.Home} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range files {
		path := filepath.Join(env.Cwd, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("x\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return env
}
