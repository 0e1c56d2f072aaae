package main

import (
	"context"
	"slices"
	"sync"
	"time"
)

// shot is one call of one caller. Only fire is timed; after, if there is one, looks at the answer.
type shot struct {
	fire, after func() error
}

// shooter makes the next shot of a caller, who has a number from 0. What it does is not timed.
type shooter func(ctx context.Context, caller int) (shot, error)

// sample is what some callers saw in some time.
type sample struct {
	latencies []time.Duration
	elapsed   time.Duration
	cpu       time.Duration // of the server
	failed    int
	firstErr  string
}

// load has callers call again and again for a time, but at least once.
func load(ctx context.Context, callers int, limit time.Duration, next shooter) sample {
	parts := make([]sample, callers)
	began := time.Now()
	var wg sync.WaitGroup
	for i := range parts {
		wg.Go(func() {
			for first := true; (first || time.Since(began) < limit) && ctx.Err() == nil; first = false {
				parts[i].one(ctx, i, next)
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

func (s *sample) one(ctx context.Context, caller int, next shooter) {
	shot, err := next(ctx, caller)
	if err != nil {
		s.fail(err)
		return
	}
	began := time.Now()
	err = shot.fire()
	took := time.Since(began)
	if err == nil && shot.after != nil {
		err = shot.after()
	}
	if err != nil {
		s.fail(err)
		return
	}
	s.latencies = append(s.latencies, took)
}

func (s *sample) fail(err error) {
	s.failed++
	if s.firstErr == "" {
		s.firstErr = err.Error()
	}
}

func (s *sample) add(o sample) {
	s.latencies = append(s.latencies, o.latencies...)
	s.elapsed += o.elapsed
	s.cpu += o.cpu
	s.failed += o.failed
	if s.firstErr == "" {
		s.firstErr = o.firstErr
	}
}

// row makes the cell of the report.
func (s *sample) row(name string, callers int) row {
	slices.Sort(s.latencies)
	r := row{Name: name, Callers: callers, Calls: len(s.latencies), Failed: s.failed, Error: s.firstErr,
		P50MS: ms(percentile(s.latencies, 50)), P95MS: ms(percentile(s.latencies, 95)), P99MS: ms(percentile(s.latencies, 99))}
	if s.elapsed > 0 {
		r.PerSecond = float64(len(s.latencies)) / s.elapsed.Seconds()
	}
	if n := len(s.latencies) + s.failed; n > 0 {
		r.CPUMS = ms(s.cpu) / float64(n)
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
