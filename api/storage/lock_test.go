package storage

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// TestLockOfADeadHolder: a daemon was killed between a fork and the exec of the child, which still has the lock for
// a moment. The next start waits for it. While the holder lives it does not wait.
func TestLockOfADeadHolder(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := os.Open(dir)
	require.NoError(t, err)
	require.NoError(t, unix.Flock(int(held.Fd()), unix.LOCK_EX))
	child := exec.Command("sleep", "0.3")
	child.ExtraFiles = []*os.File{held} // shares the lock
	require.NoError(t, child.Start())
	require.NoError(t, held.Close())
	require.NoError(t, os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(os.Getpid())), 0o600))
	_, err = Open(Options{Dir: dir})
	var locked *LockedError
	require.ErrorAs(t, err, &locked, "the holder lives")
	require.NoError(t, os.WriteFile(filepath.Join(dir, pidFile), []byte(strconv.Itoa(deadPID(t))), 0o600))
	db, err := Open(Options{Dir: dir})
	require.NoError(t, err)
	require.NoError(t, db.Close())
	require.NoError(t, child.Wait())
}

// deadPID is the number of a process that has just ended.
func deadPID(t *testing.T) int {
	t.Helper()
	cmd := exec.Command("true")
	require.NoError(t, cmd.Run())
	return cmd.Process.Pid
}
