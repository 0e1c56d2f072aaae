package daemon

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync"
	"syscall"
)

// BinaryEnv names the environment variable that holds the path of a ready rig-bridge binary. When it is
// set, nothing is built. A variable of the same form exists for each command, as in RIGCTL_BINARY.
const BinaryEnv = "RIG_BRIDGE_BINARY"

var binaryEnv = map[string]string{"rig-bridge": BinaryEnv, "rigctl": "RIGCTL_BINARY"}

var builds struct {
	sync.Mutex
	done map[string]built
}

type built struct {
	path string
	err  error
}

// Root returns the top directory of the source tree.
func Root() string {
	_, file, _, _ := runtime.Caller(0)
	return filepath.Dir(filepath.Dir(filepath.Dir(filepath.Dir(file))))
}

// Build builds a command of this module (its folder name below cmd) and returns the path of the binary.
// It builds once in a process; processes that build at the same time take turns.
func Build(command string) (string, error) {
	if path := os.Getenv(binaryEnv[command]); path != "" {
		return path, nil
	}
	builds.Lock()
	defer builds.Unlock()
	if b, ok := builds.done[command]; ok {
		return b.path, b.err
	}
	path, err := build(command)
	if builds.done == nil {
		builds.done = map[string]built{}
	}
	builds.done[command] = built{path, err}
	return path, err
}

func build(command string) (path string, err error) {
	dir := filepath.Join(Root(), ".tools", "bin")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("make the folder of built commands: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, command+".lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return "", fmt.Errorf("open the build lock: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // closing releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("take the build lock: %w", err)
	}
	path = filepath.Join(dir, command)
	cmd := exec.Command("go", "build", "-o", path, "./cmd/"+command)
	cmd.Dir = Root()
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build %s: %w\n%s", command, err, out)
	}
	return path, nil
}
