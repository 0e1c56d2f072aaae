package transport

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"sync"
)

// sessions mints and checks session ids. An id is 16 random bytes and their
// MAC, so it proves itself to every daemon that holds the key and costs no
// memory. Only ended ids are remembered, the latest maxEnded of them and not
// across a restart: to come back with an id one ended is a client's fault that
// harms nobody.
type sessions struct {
	key []byte

	mu    sync.Mutex
	ended *latest[string, struct{}]
}

const (
	nonceSize = 16
	maxEnded  = 4096
)

func newSessions(key []byte) *sessions {
	return &sessions{key: key, ended: newLatest[string, struct{}](maxEnded)}
}

// mint returns a new id.
func (s *sessions) mint() string {
	nonce := make([]byte, nonceSize)
	rand.Read(nonce) // never fails
	return base64.RawURLEncoding.EncodeToString(append(nonce, s.mac(nonce)...))
}

func (s *sessions) mac(nonce []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("mcp session\x00"))
	m.Write(nonce)
	return m.Sum(nil)[:nonceSize]
}

// valid tells whether id was minted with our key and not ended.
func (s *sessions) valid(id string) bool {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(raw) != 2*nonceSize || !hmac.Equal(raw[nonceSize:], s.mac(raw[:nonceSize])) {
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	_, gone := s.ended.values[id]
	return !gone
}

// end makes a valid id invalid.
func (s *sessions) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended.put(id, struct{}{})
}
