package exchange

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/types"
)

func TestReplaysAreLeastRecentlyUsed(t *testing.T) {
	x := New()
	for i := range MaxReplays {
		x.PutReplay(types.UID(fmt.Sprint(i)), &Result{Text: "r"})
	}
	if _, ok := x.Replay("0"); !ok {
		t.Fatal("the oldest of 64 results is gone")
	}
	x.PutReplay("new", &Result{Text: "r"})
	if _, ok := x.Replay("0"); !ok {
		t.Error("a result that was just used was evicted")
	}
	if _, ok := x.Replay("1"); ok {
		t.Error("the least recently used result was kept")
	}
}

func TestReplaysAreBoundedInBytes(t *testing.T) {
	x := New()
	big := strings.Repeat("x", MaxReplayBytes/2)
	x.PutReplay("a", &Result{Text: big})
	x.PutReplay("b", &Result{Text: big})
	if _, ok := x.Replay("a"); ok {
		t.Error("two results of half the bound each, plus overhead, were both kept")
	}
	if _, ok := x.Replay("b"); !ok {
		t.Error("the newest result was not kept")
	}
}

// A result waits for the caller that asked, however many others come and go meanwhile.
func TestResultsWaitForTheirCallers(t *testing.T) {
	x := New()
	ref, err := x.PutArguments([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	x.Deliver(ref, &Result{Text: "mine"})
	x.DropArguments(ref)
	for i := range 2 * MaxReplays {
		x.PutReplay(types.UID(fmt.Sprint(i)), &Result{})
	}
	if r, ok := x.Collect(ref); !ok || r.Text != "mine" {
		t.Errorf("collected %v, %v", r, ok)
	}
	x.Release(ref)
	x.Release(ref)
	if _, ok := x.Collect(ref); ok || len(x.calls) != 0 {
		t.Errorf("after the release %d calls are left", len(x.calls))
	}
}

// A caller that gives up leaves the arguments for the one that still works on them.
func TestArgumentsOutliveTheirCaller(t *testing.T) {
	x := New()
	ref, err := x.PutArguments([]byte("{}"))
	if err != nil {
		t.Fatal(err)
	}
	x.Release(ref)
	if _, ok := x.Arguments(ref); !ok {
		t.Fatal("the arguments went with the caller")
	}
	x.Deliver(ref, &Result{})
	x.DropArguments(ref)
	if len(x.calls) != 0 || x.argBytes != 0 {
		t.Errorf("%d calls, %d bytes are left", len(x.calls), x.argBytes)
	}
}

func TestArgumentsAreBounded(t *testing.T) {
	x := New()
	ref, err := x.PutArguments(make([]byte, MaxArgumentBytes))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.PutArguments([]byte("1")); !errors.Is(err, ErrFull) {
		t.Fatalf("err = %v, want ErrFull", err)
	}
	x.DropArguments(ref)
	x.DropArguments(ref)
	if _, err := x.PutArguments([]byte("1")); err != nil {
		t.Errorf("after room was made: %v", err)
	}
}
