package replace_test

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"golang.org/x/sys/unix"

	"github.com/rigbridge/rigbridge/controllers/engine"
	"github.com/rigbridge/rigbridge/controllers/engine/replace"
)

// Some cases need a process of their own: umask, account, limits and mounts belong to the whole process. The test
// binary runs itself with childEnv naming the set-up; the child then makes one commit and prints its outcome.
const childEnv = "RIG_BRIDGE_REPLACE_CHILD"

const childAttempt = "6f1f7c6e-3a53-4a3f-9d6b-0d1a5a2b7c11"

var childSetups = map[string]func(p *replace.Plan) error{
	"umask 002": func(*replace.Plan) error { syscall.Umask(0o002); return nil },
	"limit": func(*replace.Plan) error {
		signal.Ignore(syscall.SIGXFSZ)
		return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 700 << 10, Max: 700 << 10})
	},
	"plain": func(*replace.Plan) error { return nil },
	"killed before the rename": func(p *replace.Plan) error {
		p.Sync = func(*os.File) error { return syscall.Kill(os.Getpid(), syscall.SIGKILL) }
		return nil
	},
	"killed after the rename": func(p *replace.Plan) error {
		p.Sync = func(f *os.File) error {
			if st, err := f.Stat(); err != nil || !st.IsDir() {
				return err
			}
			return syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
		return nil
	},
}

func TestMain(m *testing.M) {
	name := os.Getenv(childEnv)
	if name == "" {
		os.Exit(m.Run())
	}
	path, size := os.Args[1], 0
	fmt.Sscan(os.Args[2], &size)
	if err := childPrepare(name, path); err != nil {
		fmt.Println("set-up:", err)
		os.Exit(1)
	}
	target, err := replace.Look(context.Background(), path, 0, nil)
	if err == nil {
		p := replace.New(target, []byte(strings.Repeat("n", size)), &engine.Result{})
		if setup := childSetups[name]; setup != nil {
			err = setup(p)
		}
		if err == nil {
			_, err = p.Commit(context.Background(), childAttempt)
		}
	}
	var e *engine.Error
	if errors.As(err, &e) {
		fmt.Printf("%s %v\n", e.Reason, e.EffectsMayHaveOccurred)
	} else {
		fmt.Println("ok", err)
	}
	if name == "mount" { // the mount ends with this process: report what it holds
		entries, _ := os.ReadDir(filepath.Dir(path))
		st, _ := os.Stat(path)
		now, _ := replace.Revision(path)
		fmt.Println(len(entries), st.Size(), now)
	}
	os.Exit(0)
}

// childPrepare does what must happen before the target is looked at.
func childPrepare(name, path string) error {
	switch name {
	case "mount":
		if err := unix.Mount("none", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
			return err
		}
		if err := unix.Mount("tmpfs", filepath.Dir(path), "tmpfs", 0, "size=1m"); err != nil {
			return err
		}
		return os.WriteFile(path, []byte(strings.Repeat("o", 600<<10)), 0o644)
	case "plain":
		if os.Geteuid() == 0 {
			return syscall.Setresuid(65534, 65534, 65534)
		}
	}
	return nil
}

// child runs a commit of size bytes to path in a process of its own and returns what it printed.
func child(t *testing.T, setup, path string, size int, attr *syscall.SysProcAttr) string {
	t.Helper()
	self, err := os.Executable()
	check(t, err)
	cmd := exec.Command(self, path, fmt.Sprint(size))
	cmd.Env = append(os.Environ(), childEnv+"="+setup)
	cmd.SysProcAttr = attr
	out, err := cmd.CombinedOutput()
	if killed := strings.HasPrefix(setup, "killed"); killed != (err != nil) {
		t.Fatalf("child %s: %v\n%s", setup, err, out)
	}
	return strings.TrimSpace(string(out))
}

// openFolder is a folder that every account may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "replace")
	check(t, err)
	t.Cleanup(func() { os.RemoveAll(dir) })
	check(t, os.Chmod(dir, 0o777))
	dir, err = filepath.EvalSymlinks(dir)
	check(t, err)
	return dir
}

// Case I3: a new file has the mode that the umask leaves and, in a set-gid folder, the folder's group.
func TestI3NewFileFollowsUmaskAndFolder(t *testing.T) {
	dir := folder(t)
	gid := os.Getegid()
	if os.Geteuid() == 0 {
		gid = 12345
		check(t, os.Chown(dir, -1, gid))
	}
	check(t, syscall.Chmod(dir, 0o2775))
	path := filepath.Join(dir, "sub", "f")
	if out := child(t, "umask 002", path, 1, nil); out != "ok <nil>" {
		t.Fatal(out)
	}
	for name, want := range map[string]uint32{path: 0o664, filepath.Dir(path): 0o2775} {
		var st syscall.Stat_t
		check(t, syscall.Stat(name, &st))
		if st.Mode&0o7777 != want || int(st.Gid) != gid {
			t.Errorf("%s has mode %o and group %d, want %o and %d", name, st.Mode&0o7777, st.Gid, want, gid)
		}
	}
}

// Case I6, with a full file system: a tmpfs of 1 MB that holds 600 KB, 900 KB to write.
func TestI6NoSpaceOnTmpfs(t *testing.T) {
	attr := &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= syscall.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}
	}
	out := child(t, "mount", filepath.Join(folder(t), "f"), 900<<10, attr)
	old := replace.RevisionOf([]byte(strings.Repeat("o", 600<<10)))
	if want := "NoSpace false\n1 614400 " + old; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

// Case I6, where nothing can be mounted: a limit on the size of files cuts the write short.
func TestI6WriteCutShortByALimit(t *testing.T) {
	path := filepath.Join(folder(t), "f")
	old := strings.Repeat("o", 600<<10)
	put(t, path, old, 0o644)
	if out := child(t, "limit", path, 900<<10, nil); out != "InputOutput false" {
		t.Errorf("outcome %q", out)
	}
	holds(t, path, old)
}

// A process that is killed leaves the old bytes or the new ones, and a temporary file that can be found.
func TestKilledCommitIsDecidedAndSwept(t *testing.T) {
	for setup, want := range map[string]replace.Verdict{
		"killed before the rename": replace.Expected,
		"killed after the rename":  replace.Planned,
	} {
		path := filepath.Join(folder(t), "f")
		put(t, path, "old", 0o644)
		p := plan(t, path, "nnn")
		child(t, setup, path, 3, nil)
		if v, err := replace.Decide(path, p.After, p.Before); v != want || err != nil {
			t.Errorf("%s: verdict %s, %v; want %s", setup, v, err, want)
		}
		_, err := os.Lstat(p.TempPath(childAttempt))
		if left := err == nil; left != (want == replace.Expected) {
			t.Errorf("%s: temporary file left: %v", setup, left)
		}
		replace.Sweep(p.TempPath(childAttempt))
		if want == replace.Expected { // the same plan still works
			_, err := p.Commit(context.Background(), uuid.NewString())
			check(t, err)
		}
		holds(t, path, "nnn")
	}
}

// A file that the account may not write is refused, although the folder would allow the rename.
func TestReadOnlyFileIsRefused(t *testing.T) {
	path := filepath.Join(openFolder(t), "f")
	put(t, path, "old", 0o444)
	if out := child(t, "plain", path, 1, nil); out != "PermissionDenied false" {
		t.Errorf("outcome %q", out)
	}
	holds(t, path, "old")
}

func TestFolderWithoutWritePermissionIsRefused(t *testing.T) {
	dir := openFolder(t)
	path := filepath.Join(dir, "f")
	put(t, path, "old", 0o666)
	check(t, os.Chmod(dir, 0o555))
	if out := child(t, "plain", path, 1, nil); out != "PermissionDenied false" {
		t.Errorf("outcome %q", out)
	}
	holds(t, path, "old")
}

func TestFolderThatCannotBeReadIsNoFailure(t *testing.T) {
	dir := openFolder(t)
	path := filepath.Join(dir, "f")
	put(t, path, "old", 0o666)
	check(t, os.Chmod(dir, 0o333))
	if out := child(t, "plain", path, 1, nil); out != "ok <nil>" {
		t.Errorf("outcome %q", out)
	}
	check(t, os.Chmod(dir, 0o777))
	holds(t, path, "n")
}

// Owner, group, access list and attributes stay where the account may set them; a set-id bit never passes to another
// owner.
func TestOwnerAndAttributesAreKept(t *testing.T) {
	path := filepath.Join(openFolder(t), "f")
	put(t, path, "old", 0o640)
	// Not every file system has these; what could not be set reads as an error on both sides.
	unix.Setxattr(path, "user.origin", []byte("elsewhere"), 0)
	unix.Setxattr(path, "system.posix_acl_access", accessList(), 0)
	root := os.Geteuid() == 0
	if root {
		check(t, os.Chown(path, 12345, 54321))
		check(t, syscall.Chmod(path, 0o6740))
	}
	var before, after syscall.Stat_t
	check(t, syscall.Stat(path, &before))
	origin, list := attribute(path, "user.origin"), attribute(path, "system.posix_acl_access")
	_, err := plan(t, path, "new").Commit(context.Background(), uuid.NewString())
	check(t, err)
	check(t, syscall.Stat(path, &after))
	if after.Uid != before.Uid || after.Gid != before.Gid || after.Mode != before.Mode {
		t.Errorf("owner %d:%d mode %o, want %d:%d mode %o", after.Uid, after.Gid, after.Mode, before.Uid, before.Gid, before.Mode)
	}
	if got := attribute(path, "user.origin"); got != origin {
		t.Errorf("attribute %q, want %q", got, origin)
	}
	if got := attribute(path, "system.posix_acl_access"); got != list {
		t.Errorf("access list %q, want %q", got, list)
	}
	if !root {
		return
	}
	check(t, syscall.Chmod(path, 0o6777)) // now somebody else replaces it
	if out := child(t, "plain", path, 1, nil); out != "ok <nil>" {
		t.Fatal(out)
	}
	check(t, syscall.Stat(path, &after))
	if after.Uid != 65534 || after.Mode&0o6000 != 0 {
		t.Errorf("owner %d, mode %o: a set-id bit went to another owner", after.Uid, after.Mode&0o7777)
	}
}

// accessList lets one more account read.
func accessList() []byte {
	b := binary.LittleEndian.AppendUint32(nil, 2)
	for _, e := range [][3]uint32{{0x01, 6, 0xffffffff}, {0x02, 4, 23456}, {0x04, 4, 0xffffffff}, {0x10, 4, 0xffffffff}, {0x20, 0, 0xffffffff}} {
		b = binary.LittleEndian.AppendUint16(b, uint16(e[0]))
		b = binary.LittleEndian.AppendUint16(b, uint16(e[1]))
		b = binary.LittleEndian.AppendUint32(b, e[2])
	}
	return b
}

func attribute(path, name string) string {
	b := make([]byte, 256)
	n, err := unix.Lgetxattr(path, name, b)
	if err != nil {
		return err.Error()
	}
	return string(b[:n])
}
