package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-logr/logr"

	"github.com/rigbridge/rigbridge/cmd/internal/searchpath"
)

// asked returns what the daemon finds for an account with this shell and profile.
func asked(t *testing.T, shell, profile, text string) searchpath.Report {
	t.Helper()
	home := t.TempDir()
	t.Setenv("HOME", home)
	t.Setenv("SHELL", shell)
	t.Setenv("PATH", "/usr/bin:/bin")
	file := filepath.Join(home, profile)
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	p := newPrograms()
	p.find(t.Context(), logr.Discard())
	p.asking.Wait()
	if got := os.Getenv("PATH"); got != p.report.Path() {
		t.Errorf("PATH is %s, the report says %s", got, p.report.Path())
	}
	return p.report
}

// Whatever a profile does besides, its PATH is found.
func TestLoginShell(t *testing.T) {
	for _, c := range []struct{ name, shell, profile, text string }{
		{"plain", "bash", ".profile", "PATH=/tool/bin:$PATH\n"},
		{"sh", "sh", ".profile", "export PATH=/tool/bin:$PATH\n"},
		{"for a person at a terminal only", "bash", ".bash_profile", "case $- in *i*) PATH=/tool/bin:$PATH;; esac\n"},
		{"zsh", "zsh", ".zshrc", "path=(/tool/bin $path)\n"},
		{"fish", "fish", ".config/fish/config.fish", "set -gx PATH /tool/bin $PATH\n"},
		{"noisy", "bash", ".profile", "PATH=/tool/bin:$PATH; seq 100000; seq 100000 >&2; printf '/noise\\n' >/dev/stdout\n"},
		{"asks", "bash", ".profile", "read -r answer; PATH=/tool/bin:$PATH\n"},
		{"wants a terminal", "bash", ".profile", "stty -echo </dev/tty; PATH=/tool/bin:$PATH\n"},
		{"fails", "bash", ".profile", "PATH=/tool/bin:$PATH; false; no-such-command\n"},
		{"leaves a child that holds everything open", "bash", ".profile", "PATH=/tool/bin:$PATH; sleep 600 & disown\n"},
		{"ends when somebody is there", "bash", ".profile", "PATH=/tool/bin:$PATH; case $- in *i*) exit 1;; esac\n"},
		{"becomes another shell", "bash", ".profile", "PATH=/tool/bin:$PATH; export PATH; case $- in *i*) exec sh;; esac\n"},
	} {
		t.Run(c.name, func(t *testing.T) {
			shell, err := exec.LookPath(c.shell)
			if err != nil {
				t.Skipf("needs %s: hack/test installs it", c.shell)
			}
			r := asked(t, shell, c.profile, c.text)
			if r.Parts[0].Dir != "/tool/bin" || r.Parts[0].Sources[0] != searchpath.Login {
				t.Errorf("%+v", r)
			}
		})
	}
}

// Without an answer the daemon goes on with what it has, and the report says what is wrong.
func TestLoginShellThatTellsNothing(t *testing.T) {
	for _, c := range []struct{ name, shell, text, want string }{
		{"ends", "/bin/bash", "exit 3\n", "without telling its PATH"},
		{"is none", "/nonexistent/shell", "", "no login shell"},
		{"is another language", "/usr/bin/perl", "", "none of the shells"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := asked(t, c.shell, ".profile", c.text)
			if !strings.Contains(r.Problem, c.want) {
				t.Errorf("the report says %q", r.Problem)
			}
			if r.Parts[0].Dir != "/usr/bin" || r.Parts[0].Sources[0] != searchpath.Own {
				t.Errorf("%+v", r.Parts)
			}
		})
	}
}

// A profile that never ends is given up and leaves nothing behind, not even what it started in a session of its
// own that does not obey.
func TestHangingProfileIsKilled(t *testing.T) {
	home := t.TempDir()
	t.Setenv("HOME", home)
	profile := "setsid sh -c 'trap \"\" TERM HUP; echo $$ > child; while :; do sleep 1; done' &\nwhile [ ! -s child ]; do sleep 0.01; done\necho $$ > shell\nwhile :; do sleep 1; done\n"
	if err := os.WriteFile(filepath.Join(home, ".profile"), []byte(profile), 0o644); err != nil {
		t.Fatal(err)
	}
	var p programs
	got := make(chan error, 1)
	go func() {
		// Long enough for the profile to come as far as it gets: the limit is begun anew until it has.
		for {
			_, err := p.ask(t.Context(), "/bin/bash", "-lic", 300*time.Millisecond)
			if _, missing := os.Stat(filepath.Join(home, "shell")); missing == nil {
				got <- err
				return
			}
		}
	}()
	if err := <-got; err == nil || !strings.Contains(err.Error(), "did not get through its profile") {
		t.Errorf("the answer was %v", err)
	}
	p.asking.Wait()
	for _, name := range []string{"shell", "child"} {
		b, err := os.ReadFile(filepath.Join(home, name))
		if err != nil {
			t.Fatal(err)
		}
		pid, err := strconv.Atoi(strings.TrimSpace(string(b)))
		if err != nil {
			t.Fatal(err)
		}
		eventually(t, "the "+name+" of the profile has ended", func() bool {
			return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || zombie(pid)
		})
	}
}

// zombie says whether a process has ended and waits for its parent.
func zombie(pid int) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	_, state, _ := strings.Cut(string(b), ") ")
	return err == nil && strings.HasPrefix(state, "Z")
}
