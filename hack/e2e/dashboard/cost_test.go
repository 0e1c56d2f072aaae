package dashboard

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/browser"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestCostOfAnOpenPage measures what an open page costs a busy daemon: the processor time for an operation, at 200
// operations a second, of a daemon that no page ever looked at and of one that shows them in a page. The two work in
// turn, a few seconds each, so whatever else the machine does meets both; first without a page at either, which tells
// the noise. It measures in the page how long its own work and what a person does takes, too. It asserts nothing about
// time:
//
//	RIG_BRIDGE_MEASURE=1 go test ./hack/e2e/dashboard -run Cost -v
func TestCostOfAnOpenPage(t *testing.T) {
	if os.Getenv("RIG_BRIDGE_MEASURE") == "" {
		t.Skip("measures, and is run by hand with RIG_BRIDGE_MEASURE=1")
	}
	b := browser.Start(t)
	alone, shown := newEnv(t), newEnv(t)
	shown.browser = b
	works := map[*env]work{}
	for _, e := range []*env{alone, shown} {
		works[e] = e.begin(t, "Busy")
		put(t, filepath.Join(e.dir, "a.txt"), strings.Repeat("a line of text\n", 100))
		e.busy(t, works[e]) // warms up
	}
	compare(t, "no page is open", alone, shown, works, nil)
	tab := shown.open(t, "thread="+works[shown].thread)
	tab.Has(t, "h1", "Busy")
	tab.Eval(t, `window.tasks = [], window.events = [];
		new PerformanceObserver((l) => tasks.push(...l.getEntries().map((e) => Math.round(e.duration)))).observe({type: "longtask"});
		new PerformanceObserver((l) => events.push(...l.getEntries().filter((e) => e.name === "keydown").map((e) => e.duration))).observe({type: "event", durationThreshold: 16}); null`, nil)
	type page struct {
		Tasks, Events []float64
		passed, used  time.Duration
	}
	var pages [2]page // while the other daemon works, while its own does
	compare(t, "a page is open", alone, shown, works, func(i int) {
		began, used := time.Now(), tab.Worked(t)
		for _, key := range []string{"o", "k", "i", "k"} {
			tab.Type(t, key)
			time.Sleep(500 * time.Millisecond)
		}
		var p page
		tab.Eval(t, `({Tasks: tasks.splice(0), Events: events.splice(0)})`, &p)
		pages[i].Tasks, pages[i].Events = append(pages[i].Tasks, p.Tasks...), append(pages[i].Events, p.Events...)
		pages[i].used += tab.Worked(t) - used
		pages[i].passed += time.Since(began)
	})
	for i, what := range []string{"the other daemon works", "its daemon works"} {
		p := pages[i]
		slices.Sort(p.Tasks)
		slices.Sort(p.Events)
		t.Logf("the page while %s: %.1f %% of a processor; %s; keys: %s", what, 100*float64(p.used)/float64(p.passed),
			spread("%d tasks of more than 50 ms", p.Tasks), spread("%d took 16 ms or more until they were shown", p.Events))
	}
}

const turns = 20

// spread says how many values there are, in ms, and how large they are.
func spread(what string, sorted []float64) string {
	text := fmt.Sprintf(what, len(sorted))
	if n := len(sorted); n > 0 {
		text += fmt.Sprintf(", half up to %v ms, most up to %v ms, all up to %v ms", sorted[n/2], sorted[n*9/10], sorted[n-1])
	}
	return text
}

// compare has two daemons work in turn and says by how much the second one needs more processor time.
func compare(t *testing.T, what string, first, second *env, works map[*env]work, meanwhile func(int)) {
	t.Helper()
	var ratios []float64
	var all, passed [2]time.Duration
	for range turns {
		var one [2]time.Duration
		for i, e := range []*env{first, second} {
			var group sync.WaitGroup
			if meanwhile != nil {
				group.Go(func() { meanwhile(i) })
			}
			began := time.Now()
			one[i] = e.busy(t, works[e])
			passed[i] += time.Since(began)
			group.Wait()
			all[i] += one[i]
		}
		ratios = append(ratios, float64(one[1])/float64(one[0])-1)
	}
	var mean, square float64
	for _, r := range ratios {
		mean += r / turns
	}
	for _, r := range ratios {
		square += (r - mean) * (r - mean) / (turns - 1)
	}
	rate := func(i int) float64 { return turns * operations / passed[i].Seconds() }
	t.Logf("%s: %v and %v an operation at %.0f and %.0f a second, together %+.1f %%; in %d turns %+.1f %% with a standard error of %.1f %%", what,
		all[0]/turns, all[1]/turns, rate(0), rate(1), 100*(float64(all[1])/float64(all[0])-1), turns, 100*mean, 100*math.Sqrt(square/turns))
}

const rate, operations = 200, 600 // a second, and in one turn

// busy makes 200 calls a second for a while and returns the daemon's processor time for one.
func (e *env) busy(t *testing.T, w work) time.Duration {
	t.Helper()
	before := e.cpu(t)
	var group sync.WaitGroup
	var done atomic.Int64
	tick := time.NewTicker(time.Second / rate)
	defer tick.Stop()
	room := make(chan struct{}, 64)
	for i := range operations {
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
