package main

import (
	"bytes"
	"context"
	"regexp"
	"sync"
	"testing"
	"time"
)

// lines collects what a running command prints.
type lines struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// until waits for a line that matches.
func (l *lines) until(t *testing.T, ctx context.Context, pattern string) {
	t.Helper()
	wanted := regexp.MustCompile("(?m)" + pattern)
	for !wanted.MatchString(l.String()) {
		select {
		case <-ctx.Done():
			t.Fatalf("nothing matches %q:\n%s", pattern, l)
		case <-time.After(20 * time.Millisecond):
		}
	}
}
