package dashboard

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rigbridge/rigbridge/api/atomicfile"
)

const (
	// sessionAge is how long a login lasts without use.
	sessionAge = 30 * 24 * time.Hour
	// renewAge is the age at which a cookie that is used is replaced by a new one.
	renewAge = 24 * time.Hour
	// keySize is the size of the cookies' key, in bytes.
	keySize = 32
	// idSize is the size of a cookie's random part, in bytes.
	idSize = 16
)

// sessions issues and checks cookies. A cookie's value is the base64 of the time of issue (Unix seconds, 8 bytes, big
// endian), a random id, and their HMAC-SHA-256.
type sessions struct {
	cookie string // its name
	file   string
	now    func() time.Time

	mu  sync.Mutex
	key []byte
	// life is done when all logins have been ended.
	life context.Context
	end  context.CancelFunc
}

func newSessions(key []byte, o Options) *sessions {
	s := &sessions{cookie: "rig-bridge-" + strconv.Itoa(o.Port), file: o.KeyFile, now: o.Now, key: key}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

// readKey reads the cookies' key, or makes it at the first start.
func readKey(path string) ([]byte, error) {
	key, err := os.ReadFile(path)
	if err == nil && len(key) == keySize {
		return key, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the key of the dashboard's logins: %w", err)
	}
	return newKey(path) // a damaged one opens nothing: logging in again is all it costs
}

// newKey replaces the key.
func newKey(path string) ([]byte, error) {
	key := make([]byte, keySize)
	rand.Read(key)
	if err := atomicfile.Write(path, key, 0o600); err != nil {
		return nil, fmt.Errorf("make the key of the dashboard's logins: %w", err)
	}
	return key, nil
}

// issue gives the browser a new cookie.
func (s *sessions) issue(w http.ResponseWriter) {
	b := binary.BigEndian.AppendUint64(nil, uint64(s.now().Unix()))
	id := make([]byte, idSize)
	rand.Read(id)
	b = append(b, id...)
	s.mu.Lock()
	b = append(b, sign(s.key, b)...)
	s.mu.Unlock()
	s.set(w, base64.RawURLEncoding.EncodeToString(b), int(sessionAge/time.Second))
}

func (s *sessions) set(w http.ResponseWriter, value string, maxAge int) {
	http.SetCookie(w, &http.Cookie{Name: s.cookie, Value: value, Path: "/", MaxAge: maxAge, HttpOnly: true, SameSite: http.SameSiteStrictMode})
}

func sign(key, b []byte) []byte {
	mac := hmac.New(sha256.New, key)
	mac.Write(b)
	return mac.Sum(nil)
}

// check returns when the request's cookie was issued, and a context that is done when all logins are ended.
func (s *sessions) check(r *http.Request) (issued time.Time, life context.Context, ok bool) {
	c, err := r.Cookie(s.cookie)
	if err != nil {
		return time.Time{}, nil, false
	}
	b, err := base64.RawURLEncoding.DecodeString(c.Value)
	if err != nil || len(b) != 8+idSize+sha256.Size {
		return time.Time{}, nil, false
	}
	s.mu.Lock()
	key, life := s.key, s.life
	s.mu.Unlock()
	signed, mac := b[:8+idSize], b[8+idSize:]
	issued = time.Unix(int64(binary.BigEndian.Uint64(signed)), 0)
	age := s.now().Sub(issued)
	if !hmac.Equal(mac, sign(key, signed)) || age > sessionAge || age < -time.Hour {
		return time.Time{}, nil, false
	}
	return issued, life, true
}

// endAll makes every cookie invalid and ends what is open by one.
func (s *sessions) endAll() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, err := newKey(s.file)
	if err != nil {
		return err
	}
	s.end()
	s.key = key
	s.life, s.end = context.WithCancel(context.Background())
	return nil
}

// Admit tells whether a request has a valid cookie. Requests that it lets in must go through Protect. One with an
// Authorization header stands by that alone: Protect takes it for one that the bearer let in.
func (d *Dashboard) Admit(r *http.Request) bool {
	_, _, ok := d.sessions.check(r)
	return ok && len(r.Header.Values("Authorization")) == 0
}

// Protect wraps what can be reached by cookie: the request must come from our own page, and it ends when all logins
// are ended. The cookie of a browser at work is renewed. Requests with the bearer pass as they are.
func (d *Dashboard) Protect(next http.Handler) http.Handler {
	own := d.sameOrigin(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		issued, life, ok := d.sessions.check(r)
		if !ok || len(r.Header.Values("Authorization")) > 0 { // the guard let it in by the bearer
			next.ServeHTTP(w, r)
			return
		}
		if d.Now().Sub(issued) > renewAge {
			d.sessions.issue(w)
		}
		ctx, cancel := context.WithCancel(r.Context())
		defer cancel()
		defer context.AfterFunc(life, cancel)()
		own.ServeHTTP(w, r.WithContext(ctx))
	})
}

// sameOrigin refuses requests of other pages than ours, those of other ports of this host among them.
func (d *Dashboard) sameOrigin(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !fromOwnPage(r) {
			refuse(w, http.StatusForbidden, "Requests of other web pages are refused.")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// fromOwnPage looks at what only the browser can say. Who reads may come from nowhere, such as the address bar.
func fromOwnPage(r *http.Request) bool {
	if origin := r.Header.Values("Origin"); len(origin) > 0 {
		return len(origin) == 1 && strings.EqualFold(origin[0], "http://"+r.Host)
	}
	reads := r.Method == http.MethodGet || r.Method == http.MethodHead
	switch r.Header.Get("Sec-Fetch-Site") {
	case "same-origin":
		return true
	case "", "none":
		return reads
	}
	return false
}
