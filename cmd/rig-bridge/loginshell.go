package main

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"

	"github.com/rigbridge/rigbridge/cmd/internal/searchpath"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

// How long the login shell may take to tell its PATH: with everything that it does for a person at a terminal,
// and, should that not work, with its login profile alone.
const (
	interactiveWait = 10 * time.Second
	profileWait     = 5 * time.Second
)

// resolvingVariable tells a profile that nobody sits at this shell, so that it can leave out what takes long.
const resolvingVariable = "RIG_BRIDGE_RESOLVING_PATH"

// programs knows where programs are found. It asks the login shell in the background.
type programs struct {
	known  chan struct{} // closed when report is final and PATH is set
	report searchpath.Report
	asking sync.WaitGroup
}

func newPrograms() *programs { return &programs{known: make(chan struct{})} }

// find begins to ask the login shell. When it has answered, or has had its time, PATH is set for everything that
// this process starts. Profiles can work harder than the whole start of the daemon, so it comes after that.
func (p *programs) find(ctx context.Context, log logr.Logger) {
	own := os.Getenv("PATH")
	p.asking.Go(func() {
		defer close(p.known)
		shell := loginShell()
		login, err := p.loginPath(ctx, shell)
		p.report = searchpath.Merge(login, own)
		p.report.Shell = shell
		if err != nil {
			p.report.Problem = err.Error()
		}
		if err := os.Setenv("PATH", p.report.Path()); err != nil { // a NUL, which no shell can print
			p.report.Problem = err.Error()
		}
		if p.report.Problem != "" && ctx.Err() == nil {
			log.Info("The login shell gave no PATH", "reason", p.report.Problem)
		}
	})
}

// loginPath asks the shell, in the second place for less. Both a path and an error mean that the first question
// had no answer.
func (p *programs) loginPath(ctx context.Context, shell string) (string, error) {
	if shell == "" {
		return "", errors.New("the account has no login shell")
	}
	if !slices.Contains(understood, filepath.Base(shell)) {
		return "", fmt.Errorf("%s is none of the shells that can be asked for PATH (%s); the directories that the service had at installation count", shell, strings.Join(understood, ", "))
	}
	path, err := p.ask(ctx, shell, "-lic", interactiveWait) // much of PATH is set for a person at a terminal only
	if err != nil && ctx.Err() == nil {
		path, _ = p.ask(ctx, shell, "-lc", profileWait) // the first error says more about what is wrong
	}
	return path, err
}

// environ is the environment of commands. It waits until it is known where programs are found.
func (p *programs) environ(ctx context.Context) []string {
	select {
	case <-p.known:
	case <-ctx.Done():
	}
	return os.Environ()
}

// serve tells the account's own programs where programs are found, once that is known.
func (p *programs) serve(w http.ResponseWriter, r *http.Request) {
	select {
	case <-p.known:
	case <-r.Context().Done():
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(p.report) // the client has it or is gone
}

// question has the shell print its PATH to a descriptor of its own, away from what profiles print.
const question = `printf '%s\n' "$PATH" >&3`

// understood are the shells to which question and the flags -l, -i and -c mean the same.
var understood = []string{"sh", "ash", "bash", "dash", "fish", "ksh", "mksh", "zsh"}

// ask starts the shell and returns the PATH that it tells. What the profile started is stopped afterwards, in
// the background. The errors say what to do.
func (p *programs) ask(ctx context.Context, shell, flags string, limit time.Duration) (string, error) {
	r, w, err := os.Pipe()
	if err != nil {
		return "", fmt.Errorf("ask the login shell: %w", err)
	}
	cmd := exec.Command(shell, flags, question) // without standard streams: they are the null device
	cmd.Env = append(os.Environ(), resolvingVariable+"=1")
	cmd.ExtraFiles = []*os.File{w}
	cmd.Dir, _ = os.UserHomeDir() // empty is where we are
	family, err := process.Start(cmd)
	_ = w.Close() // the shell has its own
	if err != nil {
		_ = r.Close()
		return "", fmt.Errorf("the login shell %s cannot be started: %w", shell, err)
	}
	told, ended := make(chan string, 1), make(chan struct{})
	p.asking.Go(func() {
		line, err := bufio.NewReader(io.LimitReader(r, 1<<20)).ReadString('\n')
		if err == nil {
			told <- strings.TrimSuffix(line, "\n")
		}
		close(told)
		_ = r.Close()
	})
	p.asking.Go(func() {
		family.Await()
		close(ended)
		_, _ = family.Reap() // what it told counts, not how it ended
	})
	defer p.asking.Go(func() {
		_ = family.Stop(context.Background()) // what cannot be stopped has no part in anything
		_ = r.SetReadDeadline(time.Now())     // somebody unstoppable may hold the other end
	})
	timer := time.NewTimer(limit)
	defer timer.Stop()
	late := fmt.Errorf("%s %s did not get through its profile within %s; keep what waits or takes long out of it while %s is set", shell, flags, limit, resolvingVariable)
	silent := fmt.Errorf("%s %s ended without telling its PATH; see what it says to: %s %s true", shell, flags, shell, flags)
	for {
		select {
		case path, ok := <-told:
			if !ok {
				return "", silent
			}
			return path, nil
		case <-ctx.Done():
			return "", ctx.Err()
		case <-timer.C:
			return "", late
		case <-ended: // what it told may still be under way, and what it started may hold the other end
			ended, late = nil, silent
			timer.Reset(time.Second)
		}
	}
}

// loginShell is the account's, by the environment or else by the account's entry; empty if there is none.
func loginShell() string {
	shell := cmp.Or(os.Getenv("SHELL"), shellByEntry())
	if info, err := os.Stat(shell); err != nil || !filepath.IsAbs(shell) || info.IsDir() || info.Mode()&0o111 == 0 {
		return ""
	}
	return shell
}

// shellByEntry reads the login shell from the account's line in /etc/passwd.
func shellByEntry() string {
	b, err := os.ReadFile("/etc/passwd")
	if err != nil {
		return ""
	}
	uid := strconv.Itoa(os.Getuid())
	for line := range strings.Lines(string(b)) {
		if f := strings.Split(strings.TrimSpace(line), ":"); len(f) == 7 && f[2] == uid {
			return f[6]
		}
	}
	return ""
}
