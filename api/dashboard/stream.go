package dashboard

import (
	"bytes"
	"encoding/json"
	"net/http"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

const (
	// updateInterval is the least time between two groups of changes. The first one after a rest is told at once.
	updateInterval = 250 * time.Millisecond
	// heartbeatInterval is the most time without a line.
	heartbeatInterval = 15 * time.Second
	// clientsInterval is the least time between two CLIENTS lines.
	clientsInterval = time.Second
	// writeTimeout is how long a reader may take for what is written to it at once.
	writeTimeout = time.Minute
	// maxPending is how many objects may have changed that a reader was not told of.
	maxPending = 20_000
	// maxReaders bounds the streams that are open at the same time.
	maxReaders = 64
)

// reader is one open stream: what it was told and what it has still to be told.
type reader struct {
	wake chan struct{}

	mu    sync.Mutex
	known map[types.UID]bool
	// pending has the objects that changed, in the order in which they first did.
	pending map[types.UID]change
	order   []types.UID
	lost    bool
}

type change struct {
	entry *entry
	gone  bool
}

// open adds a reader. It is told of all that changes after the entries returned, which it knows. It returns false
// when there are too many.
func (v *view) open() (r *reader, present []*entry, ok bool) {
	r = &reader{wake: make(chan struct{}, 1), known: map[types.UID]bool{}, pending: map[types.UID]change{}}
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.readers) >= maxReaders {
		return nil, nil, false
	}
	present = v.copied()
	for _, e := range present {
		r.known[e.object.GetUID()] = true
	}
	v.readers[r] = struct{}{}
	return r, present, true
}

func (v *view) close(r *reader) {
	v.mu.Lock()
	defer v.mu.Unlock()
	delete(v.readers, r)
}

// changed notes a change. What comes and goes before the reader was told of it is forgotten.
func (r *reader) changed(e *entry, gone bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	uid := e.object.GetUID()
	if gone && !r.known[uid] {
		delete(r.pending, uid)
		return
	}
	if _, waits := r.pending[uid]; !waits {
		if len(r.order) >= maxPending {
			r.lost = true
		} else {
			r.order = append(r.order, uid)
		}
	}
	r.pending[uid] = change{e, gone}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// take returns the lines of what has changed, and false when the reader is too far behind.
func (r *reader) take() (lines []byte, ok bool) {
	r.mu.Lock()
	order, pending, lost := r.order, r.pending, r.lost
	r.order, r.pending = nil, map[types.UID]change{}
	for uid, c := range pending {
		if c.gone {
			delete(r.known, uid)
		} else {
			r.known[uid] = true
		}
	}
	r.mu.Unlock()
	for _, uid := range order {
		c, waits := pending[uid]
		switch {
		case !waits: // gone again, or told already
		case c.gone:
			lines = append(lines, c.entry.farewell()...)
		default:
			lines = append(lines, c.entry.encoded()...)
		}
		delete(pending, uid)
	}
	return lines, !lost
}

// watch serves the stream.
func (d *Dashboard) watch(w http.ResponseWriter, r *http.Request) {
	if err := d.view.start(r.Context()); err != nil {
		refuse(w, http.StatusServiceUnavailable, "Rig Bridge is stopping.")
		return
	}
	reader, present, ok := d.view.open()
	if !ok {
		refuse(w, http.StatusServiceUnavailable, "Too many pages are open.")
		return
	}
	defer d.view.close(reader)
	h := w.Header()
	h.Set("Content-Type", "application/x-ndjson")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	s := &stream{d: d, w: w, control: http.NewResponseController(w), reader: reader}
	if s.begin(present) {
		s.run(r)
	}
}

// stream writes to one reader.
type stream struct {
	d       *Dashboard
	w       http.ResponseWriter
	control *http.ResponseController
	reader  *reader
	clients []byte // the line sent last
}

// write sends lines at once. It returns false when the reader is gone.
func (s *stream) write(lines []byte) bool {
	_ = s.control.SetWriteDeadline(time.Now().Add(writeTimeout)) // a writer without deadlines has no network either
	_, err := s.w.Write(lines)
	return err == nil && s.control.Flush() == nil
}

func line(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // maps of plain values always encode
	}
	return append(b, '\n')
}

func (s *stream) begin(present []*entry) bool {
	d := s.d
	hello := line(map[string]any{"type": "HELLO", "version": d.Version, "startedAt": d.started.UnixMilli(), "now": d.Now().UnixMilli(),
		"account": d.Account, "host": d.Host, "home": d.Home})
	if !s.write(append(hello, s.clientsLine()...)) {
		return false
	}
	const chunk = 256 << 10
	var lines []byte
	for _, e := range present {
		if lines = append(lines, e.encoded()...); len(lines) > chunk {
			if !s.write(lines) {
				return false
			}
			lines = lines[:0]
		}
	}
	return s.write(append(lines, line(map[string]string{"type": "SYNCED"})...))
}

// clientsLine returns the line about the clients, or nothing if the last one still holds.
func (s *stream) clientsLine() []byte {
	l := line(map[string]any{"type": "CLIENTS", "clients": s.d.Clients()})
	if bytes.Equal(l, s.clients) {
		return nil
	}
	s.clients = l
	return l
}

// run sends changes until the reader goes, or the daemon or the login ends.
func (s *stream) run(r *http.Request) {
	heartbeat, clients := time.NewTicker(heartbeatInterval), time.NewTicker(clientsInterval)
	defer heartbeat.Stop()
	defer clients.Stop()
	wake := s.reader.wake
	var rested <-chan time.Time
	for {
		var lines []byte
		select {
		case <-r.Context().Done():
			return
		case <-rested:
			wake, rested = s.reader.wake, nil
		case <-wake:
			var ok bool
			if lines, ok = s.reader.take(); !ok {
				return // it connects again and gets the present
			}
			wake, rested = nil, time.After(updateInterval)
		case <-clients.C:
			lines = s.clientsLine()
		case <-heartbeat.C:
			lines = line(map[string]any{"type": "HEARTBEAT", "now": s.d.Now().UnixMilli()})
		}
		if len(lines) > 0 {
			if !s.write(lines) {
				return
			}
			heartbeat.Reset(heartbeatInterval)
		}
	}
}
