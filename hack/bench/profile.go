package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// profileEnv names the file to which a daemon that is built with the tag profile writes its profile when it ends.
const profileEnv = "RIG_BRIDGE_PROFILE"

// maxProfile bounds the file, in bytes: it lies in the repository.
const maxProfile = 300_000

// profile has a daemon work under the benchmark's mix and keeps its processor profile for hack/release. It
// does not lie beside the main package as default.pgo: every other build would compile all dependencies once more.
func profile(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("bench profile", flag.ContinueOnError)
	out := flags.String("out", "hack/rig-bridge.pgo", "`file` to write")
	length := flags.Duration("time", 60*time.Second, "how long the daemon works")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := scratchDir()
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	raw := filepath.Join(dir, "raw")
	if err := underLoad(ctx, dir, raw, *length); err != nil {
		return err
	}
	small := filepath.Join(dir, "small")
	merge := exec.CommandContext(ctx, "go", "tool", "pprof", "-proto", "-output", small, raw)
	if said, err := merge.CombinedOutput(); err != nil {
		return fmt.Errorf("go tool pprof: %w\n%s", err, said)
	}
	b, err := os.ReadFile(small)
	if err != nil {
		return fmt.Errorf("read the profile: %w", err)
	}
	if len(b) > maxProfile {
		return fmt.Errorf("the profile has %d bytes, more than %d: profile for a shorter --time", len(b), maxProfile)
	}
	if err := os.WriteFile(*out, b, 0o644); err != nil {
		return fmt.Errorf("write the profile: %w", err)
	}
	fmt.Printf("%s: %d bytes\n", *out, len(b))
	return nil
}

// underLoad runs a daemon under the mix and has it write its profile.
func underLoad(ctx context.Context, dir, raw string, length time.Duration) error {
	binary, err := build(ctx, dir, "rig-bridge-profile", "-tags", "profile", "./cmd/rig-bridge")
	if err != nil {
		return err
	}
	f, err := newFixtures(ctx, filepath.Join(dir, "fixtures"), 300, 1000)
	if err != nil {
		return err
	}
	s, err := beginWith(ctx, source{command: binary + " serve --port {port} --state-dir {state}"}, dir, profileEnv+"="+raw)
	if err != nil {
		return err
	}
	defer s.stop()
	if err := s.mix(ctx, f, length); err != nil {
		return err
	}
	if err := s.cmd.Process.Signal(syscall.SIGUSR1); err != nil {
		return fmt.Errorf("ask for the profile: %w", err)
	}
	for began := time.Now(); time.Since(began) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(raw); err == nil {
			return nil
		}
	}
	return errors.New("the daemon has written no profile")
}

// mix has four callers of each frequent tool and one of each heavy one work at the same time.
func (s *server) mix(ctx context.Context, f *fixtures, length time.Duration) error {
	heavy := []tool{
		f.searching("find", query{Tool: "find", Pattern: "*99.go"}),
		f.searching("grep", query{Tool: "grep", Pattern: "foldReceipt|sealLedger|dropLease"}),
		{name: "bash", prepare: keyed("bash", daemon.Args{"command": "true"}, text(1, kilobyte))},
	}
	if f.git != "" {
		heavy = append(heavy, tool{name: "open", prepare: opening(f.git)})
	}
	light := []tool{
		{name: "read", prepare: same("read", daemon.Args{"path": "small.txt"}, text(kilobyte, kilobyte))},
		{name: "write", prepare: writing}, {name: "edit", prepare: editing}, {name: "replay", prepare: replaying},
		{name: "ls", prepare: same("ls", daemon.Args{"path": "entries", "limit": 2000}, lines(1000))},
		{name: "wait", prepare: waiting},
	}
	var wg sync.WaitGroup
	errs := make(chan error, len(heavy)+len(light))
	for i, t := range append(heavy, light...) {
		callers := 1
		if i >= len(heavy) {
			callers = 4
		}
		wg.Go(func() {
			if got := s.sibling().turn(ctx, t, callers, length); got.failed > 0 {
				errs <- fmt.Errorf("%d calls of %s failed, the first with: %s", got.failed, t.name, got.firstErr)
			}
		})
	}
	wg.Wait()
	close(errs)
	return errors.Join(ctx.Err(), <-errs)
}

// sibling is the same server with connections and workspaces of its own.
func (s *server) sibling() *server {
	return &server{source: s.source, base: s.base, token: s.token, client: s.client, http: s.http, cmd: s.cmd, files: s.files,
		wires: newWires(s.wires.target, s.wires.header), workspaces: map[string]string{}}
}
