package server

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/rigbridge/rigbridge/api/exchange"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// What is not in memory is 410 with a reason, 204 for who only looks, and in full while it lasts.
func TestWhatLivesInMemory(t *testing.T) {
	e := newEnv(t)
	op := newOperation("w", "k", v1alpha1.ToolEdit)
	if err := e.Client.Create(t.Context(), op); err != nil {
		t.Fatal(err)
	}
	operations := e.config.Host + "/apis/rigbridge.dev/v1alpha1/namespaces/default/operations/"
	answer := func(path string) (int, string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, operations+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		b, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(b)
	}
	for _, sub := range []string{"/log", "/request", "/result"} {
		if code, body := answer(op.Name + sub); code != http.StatusGone || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s, want 410 and a Status", sub, code, body)
		}
		if code, body := answer(op.Name + sub + "?optional=true"); code != http.StatusNoContent || body != "" {
			t.Errorf("%s?optional=true: %d %q, want 204", sub, code, body)
		}
		if code, _ := answer("nobody" + sub + "?optional=true"); code != http.StatusNotFound {
			t.Errorf("%s of an unknown operation: %d, want 404", sub, code)
		}
	}
	e.exchange.PutReplay(op.UID, &exchange.Result{Text: "done", Details: json.RawMessage(`{"patch":"p"}`), Arguments: json.RawMessage(`{"path":"a"}`)})
	for path, want := range map[string]string{
		"/result?optional=true":  `{"text":"done","details":{"patch":"p"}}` + "\n",
		"/request?optional=true": `{"path":"a"}` + "\n",
	} {
		if code, body := answer(op.Name + path); code != http.StatusOK || body != want {
			t.Errorf("%s: %d %s, want %s", path, code, body, want)
		}
	}
}
