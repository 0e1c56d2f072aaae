package main

import (
	"context"
	"errors"
	"net/http"
	"sync"
	"time"
)

// activity knows whether somebody uses the daemon, and since when nobody does.
type activity struct {
	mu     sync.Mutex
	active int
	since  time.Time // when the last request began or ended
}

// watched counts the requests that h serves.
func (a *activity) watched(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		a.change(1)
		defer a.change(-1)
		h.ServeHTTP(w, r)
	})
}

func (a *activity) change(by int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.active += by
	a.since = time.Now()
}

// idle returns how long nobody has used the daemon.
func (a *activity) idle() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.active > 0 {
		return 0
	}
	return time.Since(a.since)
}

// restingSince returns when a request last began or ended.
func (a *activity) restingSince() time.Time {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.since
}

// errIdle ends a daemon that was started for others and is not needed any more.
var errIdle = errors.New("idle")

// awaitIdle reports errIdle once nothing has been asked and nothing has run for the time given. A tunnel that is
// wanted counts as running.
func (d *daemon) awaitIdle(ctx context.Context, limit time.Duration) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(limit / 20):
		}
		if d.operations.Active() > 0 || d.tunnels.Active() > 0 {
			d.activity.change(0)
		}
		if d.activity.idle() > limit {
			d.failed <- errIdle
			return
		}
	}
}
