package main

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

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
	s := load(context.Background(), 3, 20*time.Millisecond, func(_ context.Context, caller int) error {
		seen[caller].Add(1)
		if calls.Add(1)%2 == 0 {
			return errors.New("every second one")
		}
		return nil
	})
	n := int(calls.Load())
	if s.failed != n/2 || len(s.latencies) != n-n/2 || s.firstErr != "every second one" {
		t.Errorf("%d calls: %d failed, %d measured, %q", n, s.failed, len(s.latencies), s.firstErr)
	}
	for i := range seen {
		if seen[i].Load() == 0 {
			t.Errorf("caller %d never called", i)
		}
	}
	r := s.row("x", 3, 2*s.row("x", 3, 0).P50MS)
	if r.Calls != n-n/2 || r.PerSecond <= 0 || (r.P50MS > 0 && r.Ratio != 0.5) {
		t.Errorf("row %+v", r)
	}
}

func TestLimitsAddUp(t *testing.T) {
	l := limitRows{{Name: limitHTTP, Callers: 1, P50MS: 1}, {Name: limitFlush, Callers: 1, P50MS: 2}, {Name: limitFlush, Callers: 8, P50MS: 30}}
	if got := l.of(changing, 1); got != 3 {
		t.Errorf("limit %v, want 3", got)
	}
	if got := l.of(changing, 8); got != 30 {
		t.Errorf("limit %v, want 30", got)
	}
}

func TestPrint(t *testing.T) {
	r := &report{Limits: limitRows{{Name: limitHTTP, Callers: 1, P50MS: 0.1}}, Servers: []serverReport{
		{Name: "ours", StartMS: []float64{300, 100, 200}, IdleMB: 60, LoadedMB: 70, Tools: []row{{Name: "read", Callers: 1, P50MS: 2, LimitMS: 1, Ratio: 2}}},
		{Name: "theirs", Tools: []row{{Name: "read", Callers: 1, P50MS: 5, Failed: 1, Error: "read: X:\nno"}}},
	}}
	var out strings.Builder
	if err := r.print(&out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"http echo", "start-up 200 ms (median of 3), resident 60 MiB idle, 70 MiB after load", "read: X: no", "2.50"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("does not say %q:\n%s", want, out.String())
		}
	}
}
