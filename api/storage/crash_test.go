package storage

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The test binary runs itself as the process that is killed or holds the lock.
const (
	roleVariable = "STORAGE_TEST_ROLE"
	dirVariable  = "STORAGE_TEST_DIR"
)

func TestMain(m *testing.M) {
	switch os.Getenv(roleVariable) {
	case "writer":
		writeUntilKilled(os.Getenv(dirVariable))
	case "holder":
		hold(os.Getenv(dirVariable))
	case "fixture":
		fatal(makeFixture(os.Getenv(dirVariable)))
	default:
		os.Exit(m.Run())
	}
}

// child starts the test binary in a role and returns it with its output.
func child(t *testing.T, role, dir string) (*exec.Cmd, *bufio.Scanner) {
	t.Helper()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), roleVariable+"="+role, dirVariable+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd, bufio.NewScanner(out)
}

func fatal(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// writeUntilKilled says "name n revision" for each write that is durable.
func writeUntilKilled(dir string) {
	db, err := Open(Options{Dir: dir, HistoryEvents: 16})
	fatal(err)
	cfg := podConfig()
	cfg.Volatile = volatileByName
	withDrowsy(&cfg)
	st, err := db.newStore(cfg)
	fatal(err)
	var wg sync.WaitGroup
	for i := range 8 {
		name := fmt.Sprintf("%c%d", "dv"[i%4/3], i)
		wg.Go(func() {
			pod := newPod(name)
			pod.Annotations = map[string]string{"filler": strings.Repeat(name, 5000)}
			if err := st.Create(context.Background(), podKey(name), pod, nil, 0); err != nil {
				_, err = get(st, name) // it is there from the run before
				fatal(err)
			}
			for n := 0; ; n++ {
				rev, err := tryLabel(st, name, n%1000*10+int(time.Now().UnixNano()%10))
				fatal(err)
				fatal(db.WaitDurable(context.Background(), rev))
				fmt.Printf("%s %d\n", name, rev)
			}
		})
	}
	wg.Wait()
}

// TestKillAndReopen kills a writer again and again. Every durable write it told
// of must be there, or a newer one of the same object; revisions only rise.
func TestKillAndReopen(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	var highest uint64
	for round := range 5 {
		cmd, out := child(t, "writer", dir)
		durable := map[string]uint64{}
		for n := 0; n < 400+300*round && out.Scan(); n++ {
			var name string
			var rev uint64
			_, err := fmt.Sscanf(out.Text(), "%s %d", &name, &rev)
			require.NoError(t, err)
			require.Greater(t, rev, durable[name])
			durable[name] = rev
			highest = max(highest, rev)
		}
		require.NoError(t, cmd.Process.Kill())
		for out.Scan() { // what it still said before it died
			var name string
			var rev uint64
			if n, _ := fmt.Sscanf(out.Text(), "%s %d", &name, &rev); n == 2 && name[0] == 'd' {
				durable[name] = max(durable[name], rev)
				highest = max(highest, rev)
			}
		}
		_ = cmd.Wait()
		require.NotEmpty(t, durable)
		db, err := Open(Options{Dir: dir})
		require.NoError(t, err)
		st := openStore(t, db, withDrowsy)
		checkIndex(t, st, true)
		require.GreaterOrEqual(t, db.CurrentRevision(), highest)
		for name, rev := range durable {
			pod, err := get(st, name)
			if name[0] == 'v' {
				require.Error(t, err, "a volatile object survived")
				continue
			}
			require.NoError(t, err, "%s, durable at %d, is lost", name, rev)
			require.GreaterOrEqual(t, revisionOf(t, pod), rev, "%s went back", name)
		}
		next := create(t, st, fmt.Sprintf("d-round-%d", round))
		require.Greater(t, next, highest)
		highest = next
		require.NoError(t, db.Close())
	}
}

// hold opens the database, says so and waits to be killed.
func hold(dir string) {
	_, err := Open(Options{Dir: dir})
	fatal(err)
	fmt.Println("open")
	select {}
}

func TestLockHeldByAnotherProcess(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	cmd, out := child(t, "holder", dir)
	require.True(t, out.Scan())
	_, err := Open(Options{Dir: dir})
	var locked *LockedError
	require.ErrorAs(t, err, &locked)
	require.Equal(t, cmd.Process.Pid, locked.PID)
	require.Equal(t, fmt.Sprintf("the object store %s is in use by process %d; stop it or use another directory", dir, locked.PID), err.Error())
	require.NoError(t, cmd.Process.Kill())
	_ = cmd.Wait()
	db, err := Open(Options{Dir: dir})
	require.NoError(t, err, "the lock outlived its holder")
	_, err = Open(Options{Dir: dir})
	require.ErrorAs(t, err, &locked, "twice in one process")
	require.NoError(t, db.Close())
}

// TestForkedChildDoesNotKeepTheLock: between fork and exec a child has all
// descriptors of its parent, here stood in for by a duplicate.
func TestForkedChildDoesNotKeepTheLock(t *testing.T) {
	t.Parallel()
	o := Options{Dir: t.TempDir()}
	db, err := Open(o)
	require.NoError(t, err)
	copied, err := unix.Dup(int(db.lock.dir.Fd()))
	require.NoError(t, err)
	defer unix.Close(copied)
	require.NoError(t, db.Close())
	db, err = Open(o)
	require.NoError(t, err)
	require.NoError(t, db.Close())
}
