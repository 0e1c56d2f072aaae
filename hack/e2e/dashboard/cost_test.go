package dashboard

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestCostOfAnOpenPage measures what an open page costs a busy daemon: its processor time for an operation, at 200
// operations a second, without and with the page. It asserts nothing about time; run it alone on a quiet machine:
//
//	RIG_BRIDGE_MEASURE=1 go test ./hack/e2e/dashboard -run Cost -v
func TestCostOfAnOpenPage(t *testing.T) {
	if os.Getenv("RIG_BRIDGE_MEASURE") == "" {
		t.Skip("measures, and is run by hand with RIG_BRIDGE_MEASURE=1")
	}
	e, tab := opened(t, "")
	w := e.begin(t, "Busy")
	put(t, filepath.Join(e.dir, "a.txt"), strings.Repeat("a line of text\n", 100))
	var plain, paged time.Duration
	for round := range 3 {
		tab.Go(t, "about:blank")
		p := e.busy(t, w)
		tab.Go(t, e.Base()+"/#thread="+w.thread)
		tab.Shows(t, "Live")
		q := e.busy(t, w)
		t.Logf("round %d: %v an operation without the page, %v with it: %+.1f %%", round, p, q, 100*(float64(q)/float64(p)-1))
		plain, paged = plain+p, paged+q
		tab.Await(t, `new Promise((r) => requestAnimationFrame(() => r(true)))`)
	}
	t.Logf("together: %+.1f %%", 100*(float64(paged)/float64(plain)-1))
}

// busy makes 200 calls a second for a while and returns the daemon's processor time for one.
func (e *env) busy(t *testing.T, w work) time.Duration {
	t.Helper()
	const rate, span = 200, 15 * time.Second
	before := e.cpu(t)
	var group sync.WaitGroup
	var done atomic.Int64
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	room := make(chan struct{}, 64)
	for i := range rate * int(span/time.Second) {
		<-tick.C
		room <- struct{}{}
		group.Go(func() {
			defer func() { <-room }()
			switch i % 4 {
			case 0:
				e.assistant.OK(t, "write", daemon.Args{"workspace_id": w.workspace, "request_key": daemon.Key(), "path": fmt.Sprintf("%s-%d", w.workspace, time.Now().UnixNano()), "content": "x", "expected_revision": "missing"})
			default:
				e.assistant.OK(t, "read", daemon.Args{"workspace_id": w.workspace, "path": "a.txt"})
			}
			done.Add(1)
		})
	}
	group.Wait()
	return (e.cpu(t) - before) / time.Duration(done.Load())
}

// cpu is the processor time that the daemon has used (proc(5): ticks of 10 ms).
func (e *env) cpu(t *testing.T) time.Duration {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", e.Pid()))
	if err != nil {
		t.Skip(err)
	}
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	var ticks int64
	for _, f := range fields[11:13] {
		n, err := strconv.ParseInt(f, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
