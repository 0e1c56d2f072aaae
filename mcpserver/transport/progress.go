package transport

import (
	"context"
	"encoding/json"
	"math"
	"sync"
	"time"
)

// ProgressFunc tells the client how far its request is. Values must grow; one
// that does not is dropped. total 0 means unknown. Reports closer together than
// Options.ProgressInterval are merged into the latest. It may block for at most
// one write deadline, may be called from any goroutine, and does nothing once
// the request is answered.
type ProgressFunc func(progress, total float64, message string)

type progressKey struct{}

// Progress returns the request's ProgressFunc, or nil when the client did not
// ask for progress.
func Progress(ctx context.Context) ProgressFunc {
	f, _ := ctx.Value(progressKey{}).(ProgressFunc)
	return f
}

type progressParams struct {
	Token    json.RawMessage `json:"progressToken"`
	Progress float64         `json:"progress"`
	Total    float64         `json:"total,omitempty"`
	Message  string          `json:"message,omitempty"`
}

// reporter sends the progress of one request, in order and not too often.
type reporter struct {
	token    json.RawMessage
	interval time.Duration
	send     func([]byte) bool

	mu      sync.Mutex
	begun   bool
	highest float64
	sent    time.Time
	pending *progressParams
	timer   *time.Timer
	closed  bool
}

// report is the ProgressFunc.
func (r *reporter) report(progress, total float64, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed || math.IsNaN(progress) || math.IsInf(progress, 0) || r.begun && progress <= r.highest {
		return
	}
	if math.IsNaN(total) || math.IsInf(total, 0) {
		total = 0
	}
	r.begun, r.highest = true, progress
	r.pending = &progressParams{r.token, progress, total, message}
	if wait := r.interval - time.Since(r.sent); wait > 0 {
		if r.timer == nil {
			r.timer = time.AfterFunc(wait, r.due)
		}
		return
	}
	r.flush()
}

// due sends what was held back.
func (r *reporter) due() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.timer = nil
	if !r.closed {
		r.flush()
	}
}

// flush sends the pending report, if any. The caller holds mu.
func (r *reporter) flush() {
	if r.pending == nil {
		return
	}
	data, err := encode(notification{"2.0", "notifications/progress", r.pending})
	r.pending, r.sent = nil, time.Now()
	if err == nil { // finite numbers and strings always encode
		r.send(data)
	}
}

// close sends the last report and no more after it.
func (r *reporter) close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.timer != nil {
		r.timer.Stop()
	}
	if !r.closed {
		r.flush()
	}
	r.closed = true
}

// progressToken returns the token of a request as the client wrote it, or nil.
func (m *message) progressToken() json.RawMessage {
	if m.meta == nil || m.meta.ProgressToken == nil {
		return nil
	}
	var params struct {
		Meta struct {
			Token json.RawMessage `json:"progressToken"`
		} `json:"_meta"`
	}
	if json.Unmarshal(m.params, &params) != nil {
		return nil
	}
	if _, err := typedID(params.Meta.Token); err != nil {
		return nil
	}
	return params.Meta.Token
}
