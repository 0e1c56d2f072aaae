package bash

import (
	"bytes"
	"context"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// Sizes of what is kept in memory of one command's output, in bytes of text.
const (
	// HeadBytes is how much of the start is kept for good.
	HeadBytes = 16 << 10
	// TailBytes is how much of the end is kept at least.
	TailBytes = 128 << 10
)

// Output is the text that a command has printed so far, both streams in the order of arrival. It may be read
// while the command runs and afterwards, by several readers at once.
type Output struct {
	// ingest is held while a chunk is taken in; it keeps the full-output file in the order of the text.
	ingest sync.Mutex
	full   fullOutput
	begun  time.Time // set once, before anybody else has the Output

	mu           sync.Mutex
	head         []byte // the first HeadBytes, whole characters
	headFull     bool
	tail         []byte // the end of the text
	tailStart    int64  // where tail begins
	total        int64  // bytes of text
	newlines     int64
	lineStart    int64 // where the line after the last LF begins
	prevStart    int64 // where the line before that LF begins
	closed       bool
	chunks       int64         // how often something arrived
	discarded    int64         // bytes that came after the end
	changed      chan struct{} // closed at the next change, nil if nobody waits
	decoders     [2]decoder
	limitsPassed bool
}

// Size returns how many bytes and lines of text there are so far.
func (o *Output) Size() (size, lines int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.total, o.lines()
}

// Elapsed returns how long ago the command was started, by the monotonic clock.
func (o *Output) Elapsed() time.Duration { return time.Since(o.begun) }

// Discarded returns how many bytes background children wrote after the command had ended.
func (o *Output) Discarded() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.discarded
}

// Read returns at most limit bytes of text from cursor on, whole characters only but at least one, the cursor
// for the next call, and how many bytes before the returned text are no longer kept. Cursors count bytes of
// text from 0. Without new text it returns the empty string.
func (o *Output) Read(cursor int64, limit int) (text string, next, missed int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	cursor = min(max(cursor, 0), o.total)
	kept, from := o.tail, o.tailStart
	if cursor < o.tailStart && cursor < int64(len(o.head)) {
		kept, from = o.head, 0
	}
	if cursor < from {
		missed, cursor = from-cursor, from
	}
	kept = kept[cursor-from:]
	for len(kept) > 0 && !utf8.RuneStart(kept[0]) { // the tail was cut, or the cursor points, inside a character
		kept = kept[1:]
		cursor++
		if missed > 0 {
			missed++
		}
	}
	kept = kept[:wholeCharacters(kept, limit)]
	return string(kept), cursor + int64(len(kept)), missed
}

// wholeCharacters returns the largest length up to limit that ends between characters, but at least one
// character.
func wholeCharacters(p []byte, limit int) int {
	if len(p) <= limit {
		return len(p)
	}
	n := max(limit, 0)
	for n > 0 && !utf8.RuneStart(p[n]) {
		n--
	}
	if n == 0 {
		_, n = utf8.DecodeRune(p)
	}
	return n
}

// Wait returns when there is text beyond cursor or the command has ended, or with the context's error.
func (o *Output) Wait(ctx context.Context, cursor int64) error {
	for {
		o.mu.Lock()
		if o.total > cursor || o.closed {
			o.mu.Unlock()
			return nil
		}
		if o.changed == nil {
			o.changed = make(chan struct{})
		}
		changed := o.changed
		o.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// seen counts the chunks that have arrived.
func (o *Output) seen() int64 {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.chunks
}

// take adds a chunk of one stream. After close it only counts. It says whether the chunk was added.
func (o *Output) take(stream int, raw []byte) bool {
	o.ingest.Lock()
	defer o.ingest.Unlock()
	o.mu.Lock()
	o.chunks++
	if o.closed {
		o.discarded += int64(len(raw))
		o.mu.Unlock()
		return false
	}
	o.add(func(dst []byte) []byte { return o.decoders[stream].decode(dst, raw) })
	passed := o.limitsPassed
	o.mu.Unlock()
	o.full.write(raw, passed)
	return true
}

// end takes the end of one stream.
func (o *Output) end(stream int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.closed {
		o.add(o.decoders[stream].flush)
	}
}

// close ends the output: what comes later is counted and dropped.
func (o *Output) close() {
	o.ingest.Lock()
	defer o.ingest.Unlock()
	o.mu.Lock()
	if !o.closed {
		for i := range o.decoders {
			o.add(o.decoders[i].flush)
		}
	}
	o.closed = true
	o.tail = bytes.Clone(o.tail)
	o.notify()
	passed := o.limitsPassed
	o.mu.Unlock()
	o.full.close(passed)
}

// add lets decode append to the text and brings the counts up to date.
func (o *Output) add(decode func(dst []byte) []byte) {
	before := len(o.tail)
	o.tail = decode(o.tail)
	text := o.tail[before:]
	if len(text) == 0 {
		return
	}
	if !o.headFull {
		n := len(text)
		if len(o.head)+n > HeadBytes {
			n, o.headFull = wholeCharacters(text, HeadBytes-len(o.head)), true
			n = min(n, max(HeadBytes-len(o.head), 0))
		}
		o.head = append(o.head, text[:n]...)
	}
	o.countLines(text)
	o.total += int64(len(text))
	o.limitsPassed = o.limitsPassed || o.total > engine.MaxBytes || o.lines() > engine.MaxLines
	if len(o.tail) > 2*TailBytes {
		drop := len(o.tail) - TailBytes
		o.tail = o.tail[:copy(o.tail, o.tail[drop:])]
		o.tailStart += int64(drop)
	}
	o.notify()
}

func (o *Output) countLines(text []byte) {
	last := bytes.LastIndexByte(text, '\n')
	if last < 0 {
		return
	}
	o.newlines += int64(bytes.Count(text, []byte{'\n'}))
	o.prevStart = o.lineStart
	if before := bytes.LastIndexByte(text[:last], '\n'); before >= 0 {
		o.prevStart = o.total + int64(before) + 1
	}
	o.lineStart = o.total + int64(last) + 1
}

// lines counts as engine.CountLines does.
func (o *Output) lines() int64 {
	if o.total > o.lineStart {
		return o.newlines + 1
	}
	return o.newlines
}

// lastLine returns the length of the last line without its LF.
func (o *Output) lastLine() int64 {
	if o.total > o.lineStart {
		return o.total - o.lineStart
	}
	return max(o.lineStart-1-o.prevStart, 0)
}

func (o *Output) notify() {
	if o.changed != nil {
		close(o.changed)
		o.changed = nil
	}
}

// summary is the output within the limits.
type summary struct {
	text       string
	truncation *engine.Truncation // nil if nothing was cut
	lastLine   int64
	head       string
}

// summarize cuts the text to the limits from the end.
func (o *Output) summarize() summary {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.limitsPassed {
		return summary{text: string(o.tail)}
	}
	t := engine.TruncateTail(string(o.tail), engine.MaxLines, engine.MaxBytes)
	t.TotalLines, t.TotalBytes = int(o.lines()), int(o.total)
	return summary{text: t.Content, truncation: &t, lastLine: o.lastLine(), head: string(o.head)}
}
