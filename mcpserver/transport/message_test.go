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
	if len(s.ended.values) != maxEnded || len(s.ended.order) != maxEnded {
		t.Errorf("%d ended sessions, %d in order", len(s.ended.values), len(s.ended.order))
	}
}
