package transport

import (
	"encoding/json"
	"testing"
)

func TestTypedIDs(t *testing.T) {
	for _, same := range [][]string{{`5`, `5.0`, `5.000`}, {`"5"`}, {`"5.0"`}, {`5.5`}, {`-5`}, {`12345678901234567890`}, {`12345678901234567891`}, {`"\u0041"`, `"A"`}, {`""`}} {
		for _, id := range same {
			got, err := typedID(json.RawMessage(id))
			if err != nil {
				t.Errorf("%s: %v", id, err)
			}
			if first, _ := typedID(json.RawMessage(same[0])); got != first {
				t.Errorf("%s and %s differ", same[0], id)
			}
		}
	}
	seen := map[string]string{}
	for _, id := range []string{`5`, `"5"`, `"5.0"`, `5.5`, `-5`, `12345678901234567890`, `12345678901234567891`, `""`, `"n5"`, `"s5"`} {
		key, _ := typedID(json.RawMessage(id))
		if other, taken := seen[key]; taken {
			t.Errorf("%s and %s are the same", id, other)
		}
		seen[key] = id
	}
	for _, id := range []string{``, `null`, `true`, `{}`, `[]`} {
		if _, err := typedID(json.RawMessage(id)); err == nil {
			t.Errorf("%s is taken for an id", id)
		}
	}
}

func TestEndedSessionsAreBounded(t *testing.T) {
	s := newSessions([]byte("0123456789abcdef0123456789abcdef"))
	for range maxEnded + 100 {
		id := s.mint()
		s.end(id)
		s.end(id)
		if s.valid(id) {
			t.Fatal("an ended session is valid")
		}
	}
	if len(s.ended) != maxEnded || len(s.order) != maxEnded {
		t.Errorf("%d ended sessions, %d in order", len(s.ended), len(s.order))
	}
}

func FuzzParseBody(f *testing.F) {
	for _, seed := range []string{
		``, `[]`, `{}`, `[{"jsonrpc":"2.0","id":1,"method":"ping"},7]`,
		`{"jsonrpc":"2.0","id":"a","method":"tools/call","params":{"name":"x","arguments":{"a":[1]},"_meta":{"progressToken":5}}}`,
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":-0.0}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":null,"_meta":[]}}`,
		`{"jsonrpc":"2.0","id":1,"result":null}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		msgs, batch, err := parseBody(body)
		if err != nil {
			if a := errorAnswer(nil, err); a.status < 200 || !json.Valid(a.body) {
				t.Errorf("answer %d %s", a.status, a.body)
			}
			return
		}
		if len(msgs) == 0 || !batch && len(msgs) != 1 {
			t.Fatalf("%d messages, batch %t", len(msgs), batch)
		}
		for _, msg := range msgs {
			msg.progressToken()
			cancelledID(msg)
			if msg.id == nil {
				continue
			}
			if _, err := typedID(msg.id); err != nil {
				t.Errorf("id %s: %v", msg.id, err)
			}
			if msg.method == "tools/call" && msg.call.Name == nil {
				t.Error("a call without a name passes")
			}
			if a := resultAnswer(msg.id, 1); !json.Valid(a.body) {
				t.Errorf("answer %s", a.body)
			}
		}
	})
}
