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

func TestAnswersAreTakenOnce(t *testing.T) {
	x := New()
	x.PutAnswer("a", &Result{Text: "r"})
	if _, ok := x.TakeAnswer("a"); !ok {
		t.Fatal("the answer is not there")
	}
	if _, ok := x.TakeAnswer("a"); ok {
		t.Error("the answer is still there")
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
