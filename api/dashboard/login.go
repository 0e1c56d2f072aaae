package dashboard

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net/http"
	"sync"
	"time"
)

const (
	// codeAge is how long a login link is good.
	codeAge = time.Minute
	// maxCodes bounds the links that are good at the same time.
	maxCodes = 32
	// maxFragment bounds the fragment of a link, in bytes.
	maxFragment = 512
)

// codes are the one-time codes that nobody has used yet: their digests, and until when they are good.
type codes struct {
	now func() time.Time

	mu    sync.Mutex
	until map[[sha256.Size]byte]time.Time
}

// issue returns a new code. The oldest makes room when there are too many.
func (c *codes) issue() string {
	code := rand.Text()
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.until == nil {
		c.until = map[[sha256.Size]byte]time.Time{}
	}
	for len(c.until) >= maxCodes {
		var oldest [sha256.Size]byte
		var first time.Time
		for digest, until := range c.until {
			if first.IsZero() || until.Before(first) {
				oldest, first = digest, until
			}
		}
		delete(c.until, oldest)
	}
	c.until[sha256.Sum256([]byte(code))] = c.now().Add(codeAge)
	return code
}

// use tells whether a code is good, once.
func (c *codes) use(code string) bool {
	digest := sha256.Sum256([]byte(code)) // looked up by digest, so that the time taken tells nothing of the code
	c.mu.Lock()
	defer c.mu.Unlock()
	until, ok := c.until[digest]
	delete(c.until, digest)
	return ok && c.now().Before(until)
}

// Address returns the address of the page that shows a fragment such as "thread=ID". It holds no secret.
func (d *Dashboard) Address(fragment string) string {
	return fmt.Sprintf("http://127.0.0.1:%d/#%s", d.Port, fragment)
}

// Link returns an address that logs the browser in, once and within a minute, and then shows a fragment. It is for
// opening at once, not for keeping.
func (d *Dashboard) Link(fragment string) string {
	link := fmt.Sprintf("http://127.0.0.1:%d/login#code=%s", d.Port, d.codes.issue())
	if fragment != "" {
		link += "&" + fragment
	}
	return link
}

func (d *Dashboard) loginLink(w http.ResponseWriter, r *http.Request) {
	var a struct {
		Fragment string `json:"fragment"`
	}
	if !readBody(w, r, &a) {
		return
	}
	if len(a.Fragment) > maxFragment {
		refuse(w, http.StatusBadRequest, fmt.Sprintf("The fragment is longer than %d bytes.", maxFragment))
		return
	}
	reply(w, http.StatusOK, map[string]any{"url": d.Link(a.Fragment), "expiresInSeconds": int(codeAge / time.Second)})
}

func (d *Dashboard) login(w http.ResponseWriter, r *http.Request) {
	var a struct {
		Code string `json:"code"`
	}
	if !readBody(w, r, &a) {
		return
	}
	if !d.codes.use(a.Code) {
		refuse(w, http.StatusUnauthorized, "This link has been used, or is older than a minute. Ask for a new one with rigctl dashboard.")
		return
	}
	d.sessions.issue(w)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusNoContent)
}

func (d *Dashboard) session(w http.ResponseWriter, r *http.Request) {
	issued, _, ok := d.sessions.check(r)
	if !ok { // came by the bearer
		reply(w, http.StatusOK, map[string]any{})
		return
	}
	reply(w, http.StatusOK, map[string]any{"expiresAt": issued.Add(sessionAge).UnixMilli()})
}

func (d *Dashboard) logout(w http.ResponseWriter, _ *http.Request) {
	d.sessions.set(w, "", -1)
	w.WriteHeader(http.StatusNoContent)
}

func (d *Dashboard) logoutAll(w http.ResponseWriter, _ *http.Request) {
	if err := d.sessions.endAll(); err != nil {
		d.Log.Error(err, "Logins could not be ended")
		refuse(w, http.StatusInternalServerError, "The logins could not be ended: the state directory cannot be written.")
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
