package bash_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/bash"
	"github.com/rigbridge/rigbridge/controllers/engine/process"
)

func init() {
	roles["reaper"] = reaperRole
	roles["crash"] = crashRole
}

// again prepares this test binary to run in a role.
func again(t *testing.T, role string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/proc/self/exe")
	cmd.Env = append(os.Environ(), "BASH_TEST_ROLE="+role, "TMPDIR="+t.TempDir())
	cmd.Stderr = os.Stderr
	return cmd
}

// TestF6NoZombies: 500 short commands, a third of them leaving double-forked orphans, beside ordinary children
// whose exit codes must not be stolen. The role prints what went wrong.
func TestF6NoZombies(t *testing.T) {
	t.Parallel()
	out, err := again(t, "reaper").Output()
	if err != nil || string(out) != "clean\n" {
		t.Errorf("%v: %s", err, out)
	}
}

// TestF6AsProcess1 is the same as process 1 of a container.
func TestF6AsProcess1(t *testing.T) {
	t.Parallel()
	cmd := again(t, "reaper")
	cmd.Env = append(cmd.Env, "BASH_TEST_MOUNT_PROC=1")
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS}
	if os.Getuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
	}
	out, err := cmd.Output()
	if errors.Is(err, syscall.EPERM) {
		t.Skip("this system lets nobody make a process namespace")
	}
	if err != nil || string(out) != "clean\n" {
		t.Errorf("%v: %s", err, out)
	}
}

func reaperRole() int {
	if os.Getenv("BASH_TEST_MOUNT_PROC") != "" {
		if err := syscall.Mount("none", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
			return complain("make mounts private", err)
		}
		if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
			return complain("mount /proc", err)
		}
		if os.Getpid() != 1 {
			return complain("process 1", fmt.Errorf("pid is %d", os.Getpid()))
		}
	}
	if err := process.BecomeSubreaper(); err != nil {
		return complain("subreaper", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go process.ReapOrphans(ctx)
	var wait sync.WaitGroup
	failures := make(chan error, 1000)
	for range 5 {
		wait.Go(func() {
			for i := range 100 {
				failures <- oneCommand(i)
			}
		})
	}
	wait.Go(func() {
		for range 100 {
			failures <- ordinaryChild()
		}
	})
	wait.Wait()
	close(failures)
	for err := range failures {
		if err != nil {
			return complain("command", err)
		}
	}
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		left := childrenOfOurs()
		if len(left) == 0 {
			fmt.Println("clean")
			return 0
		}
		if time.Now().After(deadline) {
			return complain("children remain", errors.New(strings.Join(left, ", ")))
		}
	}
}

func complain(what string, err error) int {
	fmt.Printf("%s: %v\n", what, err)
	return 1
}

func oneCommand(i int) error {
	command, code := "exit 7", 7
	if i%3 == 0 {
		command, code = "(setsid sleep .0"+strconv.Itoa(i%10)+" >/dev/null 2>&1 &); (sleep .01 &) ; true", 0
	}
	cmd, err := bash.Start(engine.Env{Cwd: "/", Home: "/", OutputDir: os.TempDir()}, bash.Args{Command: command, Timeout: time.Minute})
	if err != nil {
		return err
	}
	<-cmd.Done()
	if o := cmd.Outcome(); o.ExitCode == nil || *o.ExitCode != code {
		return fmt.Errorf("exit code %v, want %d: %s", o.ExitCode, code, o.Result.Text)
	}
	return nil
}

// ordinaryChild is what other parts of the daemon start, git for instance; it is waited for late.
func ordinaryChild() error {
	cmd := exec.Command("/bin/sh", "-c", "exit 9")
	if err := cmd.Start(); err != nil {
		return err
	}
	time.Sleep(30 * time.Millisecond)
	var exit *exec.ExitError
	if err := cmd.Wait(); !errors.As(err, &exit) || exit.ExitCode() != 9 {
		return fmt.Errorf("an exit code was stolen: %w", err)
	}
	return nil
}

// childrenOfOurs describes every child of this process, zombies too.
func childrenOfOurs() []string {
	var list []string
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, _ := os.ReadFile(path)
		_, rest, _ := strings.Cut(string(b), ") ")
		if f := strings.Fields(rest); len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) {
			list = append(list, string(b))
		}
	}
	return list
}

// crashed is what the role that dies tells about its command.
type crashed struct {
	PGID  int
	Start string
}

func crashRole() int {
	cmd, err := bash.Start(engine.Env{Cwd: "/", Home: "/", OutputDir: os.TempDir()},
		bash.Args{Command: os.Getenv("BASH_TEST_COMMAND"), Timeout: time.Minute})
	if err != nil {
		return complain("start", err)
	}
	for text := ""; !strings.Contains(text, "up\n"); text, _, _ = cmd.Output().Read(0, 100) {
		time.Sleep(5 * time.Millisecond)
	}
	json.NewEncoder(os.Stdout).Encode(crashed{cmd.PGID(), cmd.StartTime()}) //nolint:errcheck // the test sees it
	select {}
}

// TestFoundAfterCrash: the daemon is killed; the next one finds the command, an escapee and what is left of a
// group without its leader, and stops exactly those.
func TestFoundAfterCrash(t *testing.T) {
	t.Parallel()
	for name, command := range map[string]string{
		"running":      "(setsid sleep 71 >/dev/null 2>&1 &) ; sleep 72 & echo up; wait",
		"leader ended": "(setsid sleep 73 >/dev/null 2>&1 &) ; (echo up; exec sleep 74 >/dev/null 2>&1) &",
		"no marker":    "echo up; env -i sleep 75 & sleep 76",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := again(t, "crash")
			cmd.Env = append(cmd.Env, "BASH_TEST_COMMAND="+command)
			pipe, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, _ := bufio.NewReader(pipe).ReadBytes('\n')
			var c crashed
			if err := json.Unmarshal(line, &c); err != nil {
				t.Fatalf("%v: %q", err, line)
			}
			syscall.Kill(cmd.Process.Pid, syscall.SIGKILL) //nolint:errcheck // it is ours
			cmd.Wait()                                     //nolint:errcheck // killed
			eventually(t, "two sleeps and nothing of the start are left", func() bool { return sleeps(c) == 2 })
			if err := process.Stop(context.Background(), c.PGID, c.Start); err != nil {
				t.Error(err)
			}
			if process.Alive(c.PGID, c.Start) {
				t.Error("still alive")
			}
		})
	}
}

func sleeps(c crashed) (n int) {
	left, _ := process.Group(c.PGID, c.Start)
	for _, p := range left {
		if p.Command == "sleep" {
			n++
		}
	}
	return n
}
