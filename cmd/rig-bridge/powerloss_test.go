package main

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-logr/logr"

	e2e "github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// disk remembers what each log of the store held at its last sync; nothing that came later survives. Which
// later pages may survive is tested where the store is (api/storage).
type disk struct {
	mu     sync.Mutex
	synced map[string][]byte
}

func (d *disk) sync(f *os.File) error {
	info, err := f.Stat()
	if err != nil || info.IsDir() {
		return err
	}
	content, err := os.ReadFile(f.Name())
	if err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.synced[filepath.Base(f.Name())] = bytes.TrimRight(content, "\x00")
	return nil
}

// cut copies a state directory as a power cut at this moment leaves it.
func (d *disk) cut(t *testing.T, from, to string) {
	t.Helper()
	d.mu.Lock()
	synced := maps.Clone(d.synced)
	d.mu.Unlock()
	err := filepath.WalkDir(from, func(path string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		target := filepath.Join(to, strings.TrimPrefix(path, from))
		switch info, ierr := e.Info(); {
		case ierr != nil:
			return ierr
		case e.IsDir():
			return os.MkdirAll(target, 0o700)
		case !info.Mode().IsRegular():
			return nil // the socket
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		if filepath.Ext(path) == ".mem" {
			clear(b[copy(b, synced[e.Name()]):])
		}
		return os.WriteFile(target, b, 0o600)
	})
	if err != nil {
		t.Fatalf("copy the state directory: %v", err)
	}
}

// acknowledged holds the calls that were answered.
type acknowledged struct {
	mu    sync.Mutex
	calls []e2e.Args
}

func (a *acknowledged) add(args e2e.Args) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.calls = append(a.calls, args)
}

func (a *acknowledged) now() []e2e.Args {
	a.mu.Lock()
	defer a.mu.Unlock()
	return append([]e2e.Args{}, a.calls...)
}

// TestPowerLoss cuts the power under load: a daemon that starts on what the disk holds remembers every call that was
// answered, and repeats none.
func TestPowerLoss(t *testing.T) {
	cuts := 5
	if testing.Short() {
		cuts = 2
	}
	for n := range cuts {
		t.Run(fmt.Sprint(n), powerLoss)
	}
}

func powerLoss(t *testing.T) {
	dk := &disk{synced: map[string][]byte{}}
	s := &settings{syncStore: dk.sync}
	_, c := running(t, s)
	dir := t.TempDir()
	w := open(t, c, dir)
	answered := &acknowledged{}
	ctx, stop := context.WithCancel(t.Context())
	var clients sync.WaitGroup
	for n := range 6 {
		clients.Go(func() {
			for m := 0; ctx.Err() == nil; m++ {
				key := fmt.Sprintf("k%d-%d", n, m)
				args := e2e.Args{"workspace_id": w, "request_key": key, "command": "echo " + key + " >> log"}
				if res, err := c.Call(t.Context(), "bash", args); err != nil || res.IsError {
					t.Errorf("%v %s", err, res.Raw)
				}
				answered.add(args)
			}
		})
	}
	eventually(t, "there are answers", func() bool { return len(answered.now()) > 20 })
	time.Sleep(time.Duration(rand.IntN(50)) * time.Millisecond)
	acked := answered.now() // before the files are looked at
	after := t.TempDir()
	dk.cut(t, s.StateDir, after)
	stop()
	clients.Wait()
	remembers(t, after, acked, filepath.Join(dir, "log"))
}

// remembers starts a daemon on a state directory and repeats calls that it must know.
func remembers(t *testing.T, state string, acked []e2e.Args, log string) {
	t.Helper()
	before, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	d, err := start(&settings{StateDir: state, TokenFile: filepath.Join(state, "http-token")}, logr.Discard())
	if err != nil {
		t.Fatalf("the daemon does not start after a power cut: %v", err)
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), stopWait)
		defer cancel()
		if err := d.stop(ctx); err != nil {
			t.Logf("stop: %v", err)
		}
	}()
	token, err := os.ReadFile(filepath.Join(state, "http-token"))
	if err != nil {
		t.Fatal(err)
	}
	c := e2e.NewClient(d.url(), strings.TrimSpace(string(token)))
	for _, args := range acked {
		if res := call(t, c, "bash", args); res.IsError || res.Structured["replayed"] != true {
			t.Errorf("%s was answered before the cut, and now: %s", args["request_key"], res.Raw)
		}
	}
	after, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(before, after) {
		t.Errorf("calls were made again: the log grew by %q", after[len(before):])
	}
	t.Logf("%d answered calls remembered", len(acked))
}
