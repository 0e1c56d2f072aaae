package crash

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// mountedEnv is set in the process that has mounts of its own.
const mountedEnv = "RIG_BRIDGE_CRASH_MOUNTED"

// isolated runs the calling test in a process with a mount namespace of its own, as root of a user namespace
// unless it is root anyway. It returns true in that process.
func isolated(t *testing.T) bool {
	t.Helper()
	if os.Getenv(mountedEnv) != "" {
		if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			t.Fatalf("make the mounts private: %v", err)
		}
		return true
	}
	if _, err := built(); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$", "-test.v", "-test.short="+fmt.Sprint(testing.Short()))
	cmd.Env = append(os.Environ(), mountedEnv+"=1", binaryEnv+"="+binaryPath(t))
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		cmd.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		cmd.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		cmd.SysProcAttr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Fatalf("in a mount namespace: %v", err)
	}
	return false
}

func binaryPath(t *testing.T) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// ballast fills a file system.
type ballast struct{ path string }

// leave makes the file system keep only so many bytes free, as far as they can be told.
func (b ballast) leave(t *testing.T, free int64) {
	t.Helper()
	f, err := os.OpenFile(b.path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for {
		var fs unix.Statfs_t
		if err := unix.Fstatfs(int(f.Fd()), &fs); err != nil {
			t.Fatal(err)
		}
		more := int64(fs.Bavail)*fs.Bsize - free
		if more <= 0 {
			return
		}
		if _, err := f.Write(make([]byte, min(more, 1<<20))); err != nil {
			return // full
		}
	}
}

func (b ballast) drop(t *testing.T) {
	t.Helper()
	if err := os.Remove(b.path); err != nil {
		t.Fatal(err)
	}
}

// TestFullStateDirectory fills the disk of the state directory: changes are refused before any effect and the
// caller is told why, reading works, and when there is room again the same keys work, once.
func TestFullStateDirectory(t *testing.T) {
	if !isolated(t) {
		return
	}
	h := newHouse(t)
	if err := unix.Mount("tmpfs", h.state, "tmpfs", 0, "size=160m,mode=0700"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(h.state, unix.MNT_DETACH) }) // it ends with the namespace anyway
	c := h.begin(t)
	dir := realDir(t)
	put(t, filepath.Join(dir, "list"), "END\n")
	w := &tight{h: h, c: c, dir: dir, workspace: c.Open(t, dir), renamed: watchRenames(t, dir)}
	fill := ballast{filepath.Join(h.state, "ballast")}
	w.unused = c.Open(t, dir)
	c.OK(t, "bash", w.command("before"))
	for _, free := range []int64{60 << 20, 30 << 20, 0} {
		fill.leave(t, free)
		w.refused(t, fmt.Sprintf("%dMB", free>>20))
		fill.drop(t)
		w.once(t, fmt.Sprintf("%dMB", free>>20))
	}
	w.filledUnderLoad(t, fill)
	w.killedWhenFull(t, fill)
}

// tight is a workspace of a daemon that is short of space.
type tight struct {
	h              *house
	c              *daemon.Client
	dir, workspace string
	unused         string // a workspace in which nothing was done yet
	renamed        *renames
}

func (w *tight) command(key string) daemon.Args {
	return daemon.Args{"workspace_id": w.workspace, "request_key": key, "command": "echo " + key + " >> log"}
}

func (w *tight) write(key string) daemon.Args {
	return daemon.Args{"workspace_id": w.workspace, "request_key": key + "-w", "path": key + ".txt", "content": key, "expected_revision": "missing"}
}

// refused makes calls that must be refused without effect, and reads that must work.
func (w *tight) refused(t *testing.T, key string) {
	t.Helper()
	for tool, args := range map[string]daemon.Args{"bash": w.command(key), "write": w.write(key)} {
		r, err := w.c.Call(bounded(t, 30*time.Second), tool, args)
		if err != nil {
			t.Fatalf("%s on a full disk: %v", tool, err)
		}
		if !r.IsError || r.String("reason") != "StoreUnavailable" || !strings.Contains(r.Text(), "space") && !strings.Contains(r.Text(), "full") || r.Structured["effects_may_have_occurred"] == true {
			t.Errorf("%s on a full disk: %s", tool, r.Raw)
		}
	}
	if exists(filepath.Join(w.dir, key+".txt")) || lines(t, filepath.Join(w.dir, "log"))[key] != 0 {
		t.Error("a refused call had an effect")
	}
	for tool, args := range map[string]daemon.Args{"read": {"path": "list"}, "ls": {}, "find": {"pattern": "*"}, "grep": {"pattern": "END"}} {
		for _, workspace := range []string{w.workspace, w.unused} {
			r, err := w.c.Call(bounded(t, 30*time.Second), tool, with(args, daemon.Args{"workspace_id": workspace}))
			if err != nil || r.IsError {
				t.Errorf("%s on a full disk: %v %s", tool, err, r.Raw)
			}
		}
	}
	r, err := w.c.Call(bounded(t, 30*time.Second), "workspace_open", daemon.Args{"cwd": w.dir})
	if err != nil || r.String("reason") != "StoreUnavailable" {
		t.Errorf("workspace_open on a full disk: %v %s", err, r.Raw)
	}
	if r := w.c.OK(t, "bash", w.command("before")); !r.Replayed() {
		t.Errorf("what was done before is not remembered: %s", r.Raw)
	}
}

// once repeats the calls that were refused, now that there is room: they happen, once.
func (w *tight) once(t *testing.T, key string) {
	t.Helper()
	w.c.OK(t, "bash", w.command(key))
	w.c.OK(t, "write", w.write(key))
	w.happened(t, key)
}

func (w *tight) happened(t *testing.T, key string) {
	t.Helper()
	if n := lines(t, filepath.Join(w.dir, "log"))[key]; n != 1 {
		t.Errorf("command %s ran %d times", key, n)
	}
	if n := w.renamed.of(t, key+".txt"); n != 1 {
		t.Errorf("write %s happened %d times", key, n)
	}
}

// filledUnderLoad fills the disk while clients work, and empties it again: every call is answered, and repeated
// by key each has happened once.
func (w *tight) filledUnderLoad(t *testing.T, fill ballast) {
	t.Helper()
	const clients, each = 6, 12
	var wg sync.WaitGroup
	for n := range clients {
		wg.Go(func() {
			for m := range each {
				key := fmt.Sprintf("load-%d-%d", n, m)
				for tool, args := range map[string]daemon.Args{"bash": w.command(key), "write": w.write(key)} {
					if r, err := w.c.Call(bounded(t, time.Minute), tool, args); err != nil || r.IsError && r.String("reason") != "StoreUnavailable" {
						t.Errorf("%s: %v %s", tool, err, r.Raw)
					}
				}
			}
		})
	}
	for range 4 {
		time.Sleep(50 * time.Millisecond)
		fill.leave(t, 40<<20)
		time.Sleep(50 * time.Millisecond)
		fill.drop(t)
	}
	wg.Wait()
	for n := range clients {
		for m := range each {
			w.once(t, fmt.Sprintf("load-%d-%d", n, m))
		}
	}
}

// killedWhenFull kills the daemon on a full disk. It starts there or says why not; with room it starts, and
// remembers.
func (w *tight) killedWhenFull(t *testing.T, fill ballast) {
	t.Helper()
	fill.leave(t, 0)
	w.h.kill(t)
	err := w.h.daemon.Restart()
	if err != nil {
		t.Logf("on a full disk: %v", err)
		if log := w.h.daemon.Log(); !strings.Contains(log, "no space left") && !strings.Contains(log, "full") {
			t.Errorf("the daemon does not say why it cannot start: %v", err)
		}
	} else {
		w.refused(t, "started-full")
		w.h.kill(t)
	}
	fill.drop(t)
	w.h.daemon.Revive(t)
	w.once(t, "started-full")
	if r := w.c.OK(t, "bash", w.command("before")); !r.Replayed() {
		t.Errorf("what was done before is not remembered: %s", r.Raw)
	}
}
