package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// sample is what some callers saw in some time.
type sample struct {
	latencies []time.Duration
	elapsed   time.Duration
	failed    int
	firstErr  string
}

// load has callers call again and again for a time, but at least once. Each caller gets its number, from 0.
func load(ctx context.Context, callers int, limit time.Duration, call func(ctx context.Context, caller int) error) sample {
	parts := make([]sample, callers)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			for first := true; (first || time.Since(began) < limit) && ctx.Err() == nil; first = false {
				parts[i].one(ctx, i, call)
			}
		})
	}
	wg.Wait()
	all := sample{elapsed: time.Since(began)}
	for _, p := range parts {
		all.add(p)
	}
	return all
}

func (s *sample) one(ctx context.Context, caller int, call func(context.Context, int) error) {
	began := time.Now()
	err := call(ctx, caller)
	if err != nil {
		s.failed++
		s.firstErr = err.Error()
		return
	}
	s.latencies = append(s.latencies, time.Since(began))
}

func (s *sample) add(o sample) {
	s.latencies = append(s.latencies, o.latencies...)
	s.elapsed += o.elapsed
	s.failed += o.failed
	if s.firstErr == "" {
		s.firstErr = o.firstErr
	}
}

// row makes the cell of the report. limit is the median that the machine allows, in milliseconds.
func (s *sample) row(name string, callers int, limit float64) row {
	slices.Sort(s.latencies)
	r := row{Name: name, Callers: callers, P50MS: ms(percentile(s.latencies, 50)), P95MS: ms(percentile(s.latencies, 95)),
		Calls: len(s.latencies), Failed: s.failed, Error: s.firstErr, LimitMS: limit}
	if s.elapsed > 0 {
		r.PerSecond = float64(len(s.latencies)) / s.elapsed.Seconds()
	}
	if limit > 0 {
		r.Ratio = r.P50MS / limit
	}
	return r
}

// percentile of sorted durations, by nearest rank; 0 of none.
func percentile(sorted []time.Duration, percent int) time.Duration {
	if len(sorted) == 0 {
		return 0
	}
	rank := (len(sorted)*percent + 99) / 100
	return sorted[max(0, rank-1)]
}

func ms(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
