package transport

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

const (
	// stdioDrain is how long requests may go on after the end of input, so that
	// a script that pipes its requests in gets its answers.
	stdioDrain = 500 * time.Millisecond
	// stdioEnd is how long cancelled requests may take after that.
	stdioEnd = 400 * time.Millisecond
)

// ServeStdio speaks MCP over in and out, one JSON message a line, until in ends
// or ctx does. At the end of in it waits half a second for running requests,
// cancels the rest with CauseDisconnect and returns within a second; a handler
// that is still running then is left behind. Requests run side by side, and a
// cancelled one gets no answer. When ctx ends or Shutdown is called first, a
// read of in that is under way is left behind too.
func (h *Handler) ServeStdio(ctx context.Context, in io.Reader, out io.Writer) error {
	s := &stdio{h: h, out: out, session: h.sessions.mint(), version: mcp.ProtocolVersion20250618}
	lines, failed := readLines(in, int(h.o.MaxBody))
	defer s.finish()
	for {
		select {
		case line, more := <-lines:
			if !more {
				s.drain(ctx)
				return <-failed
			}
			s.take(ctx, line)
		case <-h.calls.stops: // the running ones are cancelled
			return nil
		case <-ctx.Done():
			h.calls.cancelSession(s.session, CauseShutdown)
			return fmt.Errorf("stdio: %w", context.Cause(ctx))
		}
	}
}

// inputLine is a line of input, or the fact that one was too long.
type inputLine struct {
	data    []byte
	tooLong bool
}

// readLines delivers the lines of in, the last one even without a newline. The
// error comes after lines is closed; the end of input is none.
func readLines(in io.Reader, limit int) (<-chan inputLine, <-chan error) {
	lines, failed := make(chan inputLine), make(chan error, 1)
	go func() {
		defer close(lines)
		r := bufio.NewReaderSize(in, 64<<10)
		for {
			line, err := readLine(r, limit)
			if line.tooLong || len(bytes.TrimSpace(line.data)) > 0 {
				lines <- line
			}
			if err != nil {
				if errors.Is(err, io.EOF) {
					err = nil
				}
				failed <- err
				return
			}
		}
	}()
	return lines, failed
}

// readLine reads one line, keeping at most limit bytes of it.
func readLine(r *bufio.Reader, limit int) (line inputLine, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if len(line.data)+len(part) > limit {
			line = inputLine{tooLong: true}
		}
		if !line.tooLong {
			line.data = append(line.data, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err
		}
	}
}

// stdio is one conversation over a pair of streams.
type stdio struct {
	h       *Handler
	session string // scope of request ids, never sent
	version string // negotiated by initialize; only batches depend on it

	running sync.WaitGroup

	mu  sync.Mutex // orders writes
	out io.Writer
}

// take handles one line. Requests are registered before the next line is read,
// so that a cancellation always finds them.
func (s *stdio) take(ctx context.Context, line inputLine) {
	if line.tooLong {
		s.reply(errorAnswer(nil, badRequest(mcp.PARSE_ERROR, "The message is larger than %d bytes", s.h.o.MaxBody)))
		return
	}
	msgs, batch, err := parseBody(line.data)
	if err == nil && batch && s.version >= mcp.ProtocolVersion20250618 {
		err = badRequest(mcp.INVALID_REQUEST, "Batches ended with protocol version 2025-03-26: send one message per line")
	}
	if err != nil {
		var id json.RawMessage
		if len(msgs) == 1 && !batch {
			id = msgs[0].id
		}
		s.reply(errorAnswer(id, err))
		return
	}
	if batch {
		s.batch(ctx, msgs)
		return
	}
	if run := s.accept(ctx, msgs[0]); run != nil {
		s.running.Go(func() { s.reply(run()) })
	}
}

// accept registers a request and returns what runs it, or nil when the message
// wants no answer. An empty answer is not sent.
func (s *stdio) accept(ctx context.Context, msg message) func() answer {
	from := origin{agent: "stdio", session: s.session, modern: mcp.IsModernProtocol(msg.meta.ProtocolVersion())}
	switch {
	case msg.reply:
		s.h.questions.answer(s.session, msg)
		return nil
	case msg.id == nil:
		s.h.notice(from, msg)
		return nil
	}
	if from.modern {
		if err := checkModernMeta(msg); err != nil {
			return func() answer { return errorAnswer(msg.id, err) }
		}
	}
	if msg.method == string(mcp.MethodInitialize) {
		s.opened(msg)
	}
	id, _ := typedID(msg.id) // checked when parsed
	one, ok := s.h.calls.start(context.WithoutCancel(ctx), callKey{s.session, id})
	if !ok {
		return func() answer { return errorAnswer(msg.id, badRequest(codeServer, "The bridge is stopping")) }
	}
	return func() answer {
		defer s.h.calls.end(one)
		a := s.h.handle(one.ctx, msg, from, func(data []byte) bool {
			if one.ctx.Err() != nil {
				return false
			}
			s.write(data)
			return true
		})
		if CancelCause(one.ctx) == CauseClient {
			return answer{}
		}
		return a
	}
}

// opened remembers what initialize says.
func (s *stdio) opened(msg message) {
	var params struct {
		Version string `json:"protocolVersion"`
	}
	_ = json.Unmarshal(msg.params, &params) // the library answers malformed ones
	s.version = mcp.NegotiateLegacyVersion(params.Version)
	if info := initializeInfo(msg); info != nil {
		s.h.clients.name(s.session, *info)
	}
}

// batch answers the requests of a batch with one array.
func (s *stdio) batch(ctx context.Context, msgs []message) {
	var runs []func() answer
	for _, msg := range msgs {
		if run := s.accept(ctx, msg); run != nil {
			runs = append(runs, run)
		}
	}
	if len(runs) == 0 {
		return
	}
	s.running.Go(func() {
		bodies := make([][]byte, len(runs))
		var wg sync.WaitGroup
		for i, run := range runs {
			wg.Go(func() { bodies[i] = run().body })
		}
		wg.Wait()
		s.reply(answer{body: array(bodies)})
	})
}

// array joins encoded values to a JSON array, leaving out empty ones; without
// any there is nothing to send.
func array(values [][]byte) []byte {
	var out []byte
	for _, v := range values {
		if len(v) == 0 {
			continue
		}
		out = append(out, ',')
		out = append(out, v...)
	}
	if out == nil {
		return nil
	}
	out[0] = '['
	return append(out, ']')
}

func (s *stdio) reply(a answer) {
	if len(a.body) > 0 {
		s.write(a.body)
	}
}

// write sends one line. A reader that is gone shows as the end of in.
func (s *stdio) write(data []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, _ = s.out.Write(append(data[:len(data):len(data)], '\n'))
}

// drain lets the requests that are running end by themselves, for a while.
func (s *stdio) drain(ctx context.Context) {
	select {
	case <-s.idle():
	case <-time.After(stdioDrain):
	case <-ctx.Done():
	}
	s.h.calls.cancelSession(s.session, CauseDisconnect)
}

// finish waits for cancelled requests, for a while.
func (s *stdio) finish() {
	select {
	case <-s.idle():
	case <-time.After(stdioEnd):
	}
}

func (s *stdio) idle() <-chan struct{} {
	done := make(chan struct{})
	go func() {
		s.running.Wait()
		close(done)
	}()
	return done
}
