package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){"rigctl": main})
}

// TestScripts runs rigctl beside real daemons. A script that needs one starts it with "daemon start".
func TestScripts(t *testing.T) {
	if _, err := daemon.Build("rig-bridge"); err != nil { // once, so that scripts do not wait for each other's build
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", filepath.Join(e.WorkDir, "home"))
			e.Setenv("STATE", filepath.Join(e.WorkDir, "state"))
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"daemon": daemonCommand, "call": callCommand, "eventually": eventuallyCommand,
		},
	})
}

// daemons are those of the scripts, by state directory.
var daemons sync.Map

func running(ts *testscript.TestScript) *daemon.Daemon {
	d, ok := daemons.Load(ts.Getenv("STATE"))
	if !ok {
		ts.Fatalf("no daemon was started")
	}
	return d.(*daemon.Daemon)
}

// daemonCommand starts a daemon on $STATE, with variables of its own, ends it by SIGTERM (stop) or SIGKILL (kill), or starts it again
// (restart). It sets $RIG_BRIDGE_STATE_DIR.
func daemonCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) == 0 || len(args) > 1 && args[0] != "start" {
		ts.Fatalf("usage: daemon start [NAME=VALUE...]|stop|kill|restart")
	}
	var err error
	switch args[0] {
	case "start":
		var d *daemon.Daemon
		if d, err = daemon.Launch(daemon.Options{StateDir: ts.Getenv("STATE"), Env: args[1:]}); err == nil {
			daemons.Store(ts.Getenv("STATE"), d)
			ts.Defer(func() { ts.Check(d.Close()) })
			ts.Setenv("RIG_BRIDGE_STATE_DIR", ts.Getenv("STATE"))
		}
	case "stop":
		_, err = running(ts).Stop()
	case "kill":
		err = running(ts).Kill()
	case "restart":
		err = running(ts).Restart()
	default:
		err = fmt.Errorf("daemon %s is not known", args[0])
	}
	ts.Check(err)
}

// callCommand calls a tool as an assistant would: call TOOL JSON. Of the answer it sets $workspace_id, $operation_id
// and $handoff_id. With ! the tool must fail.
func callCommand(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: call TOOL JSON")
	}
	var arguments daemon.Args
	ts.Check(json.Unmarshal([]byte(args[1]), &arguments))
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	r, err := running(ts).Client().Call(ctx, args[0], arguments)
	ts.Check(err)
	if r.IsError != neg {
		ts.Fatalf("%s: isError %v: %s", args[0], r.IsError, r.Text())
	}
	for _, name := range []string{"workspace_id", "operation_id", "handoff_id"} {
		if value := r.String(name); value != "" {
			ts.Setenv(name, value)
		}
	}
}

// eventuallyCommand waits until a file, which a command in the background writes, matches: eventually FILE REGEXP.
func eventuallyCommand(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: eventually FILE REGEXP")
	}
	wanted, err := regexp.Compile("(?m)" + args[1])
	ts.Check(err)
	var b []byte
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		if b, _ = os.ReadFile(ts.MkAbs(args[0])); wanted.Match(b) { // it may not be there yet
			return
		}
	}
	ts.Fatalf("%s never matched %q:\n%s", args[0], args[1], strings.TrimSpace(string(b)))
}
