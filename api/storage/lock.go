package storage

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// pidFile is badger's own name for it, so that its tools agree with us.
const pidFile = "LOCK"

// dirLock is badger's directory lock, taken by us because the logs are examined
// before badger may touch them: flock on the directory plus an advisory file
// with the process id. The kernel drops it when the process dies.
type dirLock struct {
	dir *os.File
}

func lockDir(path string) (*dirLock, error) {
	dir, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("open the object store: %w", err)
	}
	if err := flock(dir); err != nil {
		_ = dir.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, &LockedError{Dir: path, PID: readPID(path)}
		}
		return nil, fmt.Errorf("lock the object store %s: %w", path, err)
	}
	pid := []byte(strconv.Itoa(os.Getpid()) + "\n")
	if err := os.WriteFile(filepath.Join(path, pidFile), pid, 0o600); err != nil {
		_ = dir.Close()
		return nil, fmt.Errorf("lock the object store %s: %w", path, err)
	}
	return &dirLock{dir: dir}, nil
}

// orphanWait is how long a lock is waited for whose holder has died.
const orphanWait = 5 * time.Second

// flock takes the lock. A holder that was killed while it forked leaves the lock
// with the child until that reaches its exec; on a busy machine a new start can
// be faster. So a lock whose holder is dead is waited for.
func flock(dir *os.File) error {
	for deadline := time.Now().Add(orphanWait); ; time.Sleep(5 * time.Millisecond) {
		err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB)
		if !errors.Is(err, unix.EWOULDBLOCK) || !dead(readPID(dir.Name())) || time.Now().After(deadline) {
			return err
		}
	}
}

// dead says whether a process is known to have ended.
func dead(pid int) bool { return pid > 0 && errors.Is(unix.Kill(pid, 0), unix.ESRCH) }

func readPID(dir string) int {
	text, err := os.ReadFile(filepath.Join(dir, pidFile))
	if err != nil {
		return 0
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return 0
	}
	return pid
}

func (l *dirLock) release() error {
	if l == nil {
		return nil
	}
	err := os.Remove(filepath.Join(l.dir.Name(), pidFile))
	// Closing alone would leave the lock with a child that was forked but has
	// not reached its exec yet.
	return errors.Join(err, unix.Flock(int(l.dir.Fd()), unix.LOCK_UN), l.dir.Close())
}
