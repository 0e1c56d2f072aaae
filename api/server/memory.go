package server

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apiserver/pkg/registry/rest"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/registry"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// What is not in memory (any more) is 410 Gone; with the query parameter optional=true it is 204 No Content, for
// readers that look whether there is something, such as a page whose browser reports every 4xx as an error.

// logREST serves operations/{name}/log: the output of a command from memory, while it lasts. Query parameters:
// follow=true goes on until the command is over, cursor=N begins after N bytes.
type logREST struct {
	operations *registry.REST
	exchange   *exchange.Exchange
}

// requestREST serves operations/{name}/request: the arguments of a call from memory, while they last.
type requestREST struct {
	operations *registry.REST
	exchange   *exchange.Exchange
}

// resultREST serves operations/{name}/result: the answer of a keyed call from memory, while it lasts: the text, and
// the tool's details, such as the diff of an edit.
type resultREST struct {
	operations *registry.REST
	exchange   *exchange.Exchange
}

var (
	_ rest.Connecter = &logREST{}
	_ rest.Connecter = &requestREST{}
	_ rest.Connecter = &resultREST{}
)

// New returns the kind that the subresource belongs to.
func (*logREST) New() runtime.Object { return &v1alpha1.Operation{} }

// Destroy does nothing: the main endpoint owns the store.
func (*logREST) Destroy() {}

// NewConnectOptions says that the handler reads its own query.
func (*logREST) NewConnectOptions() (runtime.Object, bool, string) { return nil, false, "" }

// ConnectMethods are the methods served.
func (*logREST) ConnectMethods() []string { return []string{http.MethodGet} }

// Connect returns the handler for one operation.
func (l *logREST) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	op, err := operation(ctx, l.operations, name)
	if err != nil {
		return nil, err
	}
	out, running := l.exchange.Output(op.UID)
	if !running {
		if r, ok := l.exchange.PeekReplay(op.UID); ok {
			out = r.Output
		}
	}
	if out == nil {
		return notKept(responder, "the output of %s is not kept in memory (it has none, or had to make room); see status.fullOutputPath", name), nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		query := r.URL.Query()
		cursor, err := strconv.ParseInt(query.Get("cursor"), 10, 64)
		if query.Has("cursor") && (err != nil || cursor < 0) {
			responder.Error(apierrors.NewBadRequest("cursor must be a number of bytes, from 0 on"))
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		stream(r.Context(), w, out, cursor, query.Get("follow") == "true")
	}), nil
}

// stream writes output from a cursor on, and goes on while it grows if follow is set.
func stream(ctx context.Context, w http.ResponseWriter, out exchange.Output, cursor int64, follow bool) {
	const chunk = 32 << 10
	flusher := http.NewResponseController(w)
	for {
		text, next, missed := out.Read(cursor, chunk)
		if missed > 0 {
			text = fmt.Sprintf("\n[%d bytes of output left out here]\n", missed) + text
		}
		if text == "" {
			if !follow || out.Wait(ctx, cursor) != nil {
				return
			}
			if text, _, _ = out.Read(cursor, 1); text == "" { // it is over
				return
			}
			continue
		}
		if _, err := w.Write([]byte(text)); err != nil {
			return
		}
		_ = flusher.Flush() // a writer that cannot flush delivers at the end
		cursor = next
	}
}

// New returns the kind that the subresource belongs to.
func (*requestREST) New() runtime.Object { return &v1alpha1.Operation{} }

// Destroy does nothing: the main endpoint owns the store.
func (*requestREST) Destroy() {}

// NewConnectOptions says that there are none.
func (*requestREST) NewConnectOptions() (runtime.Object, bool, string) { return nil, false, "" }

// ConnectMethods are the methods served.
func (*requestREST) ConnectMethods() []string { return []string{http.MethodGet} }

// Connect returns the handler for one operation.
func (q *requestREST) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	op, err := operation(ctx, q.operations, name)
	if err != nil {
		return nil, err
	}
	arguments, ok := q.exchange.Arguments(op.Spec.PayloadRef)
	if !ok {
		var r *exchange.Result
		if r, ok = q.exchange.PeekReplay(op.UID); ok {
			arguments = r.Arguments
		}
	}
	if len(arguments) == 0 {
		return notKept(responder, "the arguments of %s are not kept in memory; they are never stored", name), nil
	}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, arguments) }), nil
}

// New returns the kind that the subresource belongs to.
func (*resultREST) New() runtime.Object { return &v1alpha1.Operation{} }

// Destroy does nothing: the main endpoint owns the store.
func (*resultREST) Destroy() {}

// NewConnectOptions says that there are none.
func (*resultREST) NewConnectOptions() (runtime.Object, bool, string) { return nil, false, "" }

// ConnectMethods are the methods served.
func (*resultREST) ConnectMethods() []string { return []string{http.MethodGet} }

// Connect returns the handler for one operation.
func (q *resultREST) Connect(ctx context.Context, name string, _ runtime.Object, responder rest.Responder) (http.Handler, error) {
	op, err := operation(ctx, q.operations, name)
	if err != nil {
		return nil, err
	}
	result, ok := q.exchange.PeekReplay(op.UID)
	if !ok {
		return notKept(responder, "the result of %s is not kept in memory; it is never stored", name), nil
	}
	answer := struct {
		Text    string          `json:"text"`
		Details json.RawMessage `json:"details,omitempty"`
	}{result.Text, result.Details}
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, answer) }), nil
}

// notKept answers that what was asked for is not in memory.
func notKept(responder rest.Responder, format string, name string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("optional") == "true" {
			w.WriteHeader(http.StatusNoContent)
			return
		}
		responder.Error(apierrors.NewResourceExpired(fmt.Sprintf(format, name)))
	})
}

func writeJSON(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	_ = json.NewEncoder(w).Encode(v) // the reader is told or gone
}

func operation(ctx context.Context, operations *registry.REST, name string) (*v1alpha1.Operation, error) {
	obj, err := operations.Get(ctx, name, &metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	return obj.(*v1alpha1.Operation), nil
}
