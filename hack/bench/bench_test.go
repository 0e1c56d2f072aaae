package main

import (
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// TestMain lets the test's own program be the echo server, as the benchmark's is.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == echoMode {
		serveEcho()
		return
	}
	os.Exit(m.Run())
}

func TestPercentile(t *testing.T) {
	hundred := make([]time.Duration, 100)
	for i := range hundred {
		hundred[i] = time.Duration(i + 1)
	}
	for _, c := range []struct {
		of      []time.Duration
		percent int
		want    time.Duration
	}{
		{nil, 50, 0}, {hundred[:1], 95, 1}, {hundred, 50, 50}, {hundred, 95, 95}, {hundred, 100, 100}, {hundred[:3], 50, 2}, {hundred, 0, 1},
	} {
		if got := percentile(c.of, c.percent); got != c.want {
			t.Errorf("percentile %d of %d values is %d, want %d", c.percent, len(c.of), got, c.want)
		}
	}
}

func TestLoadCountsCallsAndFailures(t *testing.T) {
	var calls atomic.Int64
	seen := make([]atomic.Int64, 3)
	slow := time.Hour // of what is not timed
	s := load(t.Context(), 3, 20*time.Millisecond, func(_ context.Context, caller int) (shot, error) {
		seen[caller].Add(1)
		switch calls.Add(1) % 4 {
		case 0:
			return shot{}, errors.New("cannot be prepared")
		case 1:
			return shot{fire: func() error { return errors.New("cannot be called") }}, nil
		case 2:
			return shot{fire: func() error { return nil }, after: func() error { return errors.New("a wrong answer") }}, nil
		}
		return shot{fire: func() error { return nil }}, nil
	})
	n := int(calls.Load())
	if s.failed != n-n/4-min(n%4/3, 1) || len(s.latencies) != n-s.failed || s.firstErr == "" {
		t.Errorf("%d calls: %d failed, %d measured, %q", n, s.failed, len(s.latencies), s.firstErr)
	}
	for i := range seen {
		if seen[i].Load() == 0 {
			t.Errorf("caller %d never called", i)
		}
	}
	s.cpu = slow
	if r := s.row("x", 3); r.Calls != n-s.failed || r.PerSecond <= 0 || r.CPUMS != ms(slow)/float64(n) {
		t.Errorf("row %+v", r)
	}
}

func TestLimits(t *testing.T) {
	m, err := newMachine(t.TempDir(), 2)
	if err != nil {
		t.Fatal(err)
	}
	defer m.close()
	whole := tool{bounds: []bound{boundHTTP, boundFlush, boundFile, boundSwap, boundRun}, process: shell("yes | head -c 100000")}
	for range 2 {
		if s := load(t.Context(), 2, 0, m.shooter(whole, exchanged{3000, 70_000})); s.failed > 0 || len(s.latencies) != 2 {
			t.Errorf("%d measured, %d failed: %s", len(s.latencies), s.failed, s.firstErr)
		}
	}
	if s := load(t.Context(), 1, 0, m.shooter(tool{bounds: []bound{boundRun}, process: shell("exit 3")}, exchanged{})); s.failed != 1 {
		t.Error("a command that fails counts as a success")
	}
	if info, err := m.flush[0].Stat(); err != nil || info.Size() != 4*512 {
		t.Errorf("flushed: %v, %v", info, err)
	}
	if b, err := os.ReadFile(filepath.Join(m.dir, "swap-1")); err != nil || len(b) != kilobyte {
		t.Errorf("swapped in: %d bytes, %v", len(b), err)
	}
	limit := row{P50MS: 2}
	if r := (row{P50MS: 5, Calls: 1}).against(limit, changing); r.OverMS != 3 || r.Ratio != 2.5 || r.Limit != "http echo + fdatasync pair + file fsync" {
		t.Errorf("%+v", r)
	}
}

// A connection that the server has closed is made anew; one that breaks within an answer is a failure.
func TestWire(t *testing.T) {
	var served, broken atomic.Int64
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		served.Add(1)
		body, _ := io.ReadAll(r.Body) // compared by the client
		switch r.Header.Get("Want") {
		case "break":
			broken.Add(1)
			w.Header().Set("Content-Length", "100")
			_, _ = w.Write(body)
			panic(http.ErrAbortHandler)
		case "stream":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, ": still working\n\nevent: message\ndata: {}\n\nevent: message\ndata: %s\n\n", body)
		case "no":
			http.Error(w, "no such page", http.StatusNotFound)
		default:
			_, _ = w.Write(body)
		}
	}))
	defer srv.Close()
	ws := newWires(srv.URL+"/x", http.Header{"Content-Type": {"application/json"}})
	defer ws.close()
	w, err := ws.of(7)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		want, answer string
		fails        bool
		calls        int64
	}{{"", "hello", false, 1}, {"", "hello", false, 1}, {"stream", "hello", false, 1}, {"no", "", true, 1}, {"break", "", true, 1}, {"", "hello", false, 1}} {
		before := served.Load()
		w.prepare([]byte("hello"), "Want: "+c.want+"\r\n")
		b, err := w.roundTrip()
		if string(b) != c.answer || (err != nil) != c.fails || served.Load()-before != c.calls {
			t.Errorf("%q: %q, %v, %d requests", c.want, b, err, served.Load()-before)
		}
	}
	srv.CloseClientConnections()
	w.prepare([]byte("again"), "")
	if b, err := w.roundTrip(); string(b) != "again" || err != nil {
		t.Errorf("after the server closed the connection: %q, %v", b, err)
	}
}

func TestChecks(t *testing.T) {
	answer := func(text string) daemon.Result {
		return daemon.Result{Content: []daemon.Block{{Type: "text", Text: text}}}
	}
	for name, err := range map[string]error{
		"no text":                text(1, 5)(answer("")),
		"too much text":          text(1, 5)(answer("abcdef")),
		"a line too few":         lines(3)(answer("a\nb")),
		"nothing found":          found(answer("No files found matching pattern")),
		"not all":                found(answer("a\n\n[2000 results limit reached. Use limit=4000 for more]")),
		"no revision":            revised(answer("done")),
		"no skills":              skills(answer("No skills")),
		"an answer of no call":   errorOf(decode([]byte(`{"jsonrpc":"2.0","id":1}`))),
		"an error of the server": errorOf(decode([]byte(`{"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"x"}}`))),
	} {
		if err == nil {
			t.Errorf("%s passes", name)
		}
	}
	for name, err := range map[string]error{
		"text": text(1, 5)(answer("abcde")), "lines": lines(2)(answer("a\nb")), "rows": found(answer("a\nb")),
		"a result": errorOf(decode([]byte(`{"jsonrpc":"2.0","id":1,"result":{"content":[]}}`))),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func errorOf(_ daemon.Result, err error) error { return err }

func TestPrint(t *testing.T) {
	r := &report{Limits: []row{{Name: "http echo", Callers: 1, P50MS: 0.1}}, Servers: []serverReport{
		{Name: "ours", StartMS: []float64{300, 100, 200}, Idle: memory{60, 12}, Loaded: memory{70, 22}, Tools: []row{{Name: "read", Callers: 1, P50MS: 2, LimitMS: 1, Ratio: 2}}},
		{Name: "theirs", Tools: []row{{Name: "read", Callers: 1, P50MS: 5, Failed: 1, Error: "read: X:\nno"}}},
	}}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http echo", "start-up 200 ms (median of 3), resident 60 MiB idle (12.0 anonymous), 70 MiB after load (22.0 anonymous)", "read: X: no", "2.50"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("does not say %q:\n%s", want, out.String())
		}
	}
}

// TestChart reads a plot back: each point lies where its values belong, and an empty store has a place on a
// logarithmic axis.
func TestChart(t *testing.T) {
	c := chart{title: "a < b", xName: "receipts", yName: "ms", xLog: true, series: []series{{name: "start", points: []point{{0, 0}, {10, 50}, {1000, 100}}}}}
	var drawn struct {
		Lines []struct {
			Points string `xml:"points,attr"`
		} `xml:"polyline"`
		Texts []string `xml:"text"`
	}
	if err := xml.Unmarshal([]byte(c.svg()), &drawn); err != nil {
		t.Fatal(err)
	}
	// Decades on the x axis: none, 10, 100, 1000.
	const bottom, width = chartHeight - chartBottom, chartWidth - chartRight - chartLeft
	want := fmt.Sprintf("%.1f,%.1f %.1f,%.1f %.1f,%.1f", float64(chartLeft), float64(bottom), chartLeft+width/3.0, (bottom+chartTop)/2.0, float64(chartLeft+width), float64(chartTop))
	if len(drawn.Lines) != 1 || drawn.Lines[0].Points != want {
		t.Errorf("drawn %+v, want %s", drawn.Lines, want)
	}
	for _, want := range []string{"a < b", "receipts", "ms", "start", "1k", "100"} {
		if !slices.Contains(drawn.Texts, want) {
			t.Errorf("no text %q in %q", want, drawn.Texts)
		}
	}
	for v, want := range map[float64]string{0: "0", 1e6: "1M", 1500: "1.5k", 0.05: "0.05", 12: "12"} {
		if got := short4(v); got != want {
			t.Errorf("%v is written %q, want %q", v, got, want)
		}
	}
}

func TestVerdict(t *testing.T) {
	var r simulateReport
	for i := range 30 {
		h := holding{Goroutines: 100 + i%2, Descriptors: 20, DiskMB: 100 + 10*float64(i)}
		h.Resident = 60 + float64(i%3)
		r.Samples = append(r.Samples, h)
	}
	r.judge()
	for name, want := range map[string]bool{"resident MiB": true, "descriptors": true, "goroutines": true, "disk MiB": false} {
		if r.Growth[name].Flat != want {
			t.Errorf("%s: %+v", name, r.Growth[name])
		}
	}
}

// TestSummary takes the calls that went the usual way and leaves out the one that did not.
func TestSummary(t *testing.T) {
	usual := func(read int64) []step {
		return []step{{"sent", 0}, {"received", 10_000}, {"worked", 10_000 + read}, {"answered", 20_000 + read}}
	}
	passed := []step{{"received", 1}, {"reconciling", 2}, {"reconciling", 3}, {"working", 4}, {"reconciling", 5}, {"worked", 6}, {"reconciling", 7}, {"before-terminal", 8}, {"written", 9}}
	if got := onTheWay(passed); len(got) != 6 || got[1].at != 3 || got[3].name != "worked" || got[4].at != 7 {
		t.Errorf("on the way: %v", got)
	}
	got, err := summarize("read", [][]step{usual(5000), {{"sent", 0}, {"answered", 1}}, usual(7000), usual(6000)})
	if err != nil {
		t.Fatal(err)
	}
	if got.Alike != 3 || got.P50US != 26 || len(got.Hops) != 3 || got.Hops[1].P50US != 6 || got.Hops[1].Group != "runner: the tool" {
		t.Errorf("%+v", got)
	}
}
