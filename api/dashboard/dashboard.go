package dashboard

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// Options are what the dashboard is made of. All are required.
type Options struct {
	// Client reads, watches and writes objects.
	Client client.WithWatch
	// Durable waits until everything up to a resourceVersion is on disk.
	Durable func(ctx context.Context, resourceVersion string) error
	// KeyFile holds the key of the cookies; it is made at the first start.
	KeyFile string
	// Port is the daemon's TCP port, part of the links and of the cookie's name.
	Port int
	// Version, Account, Host and Home are shown.
	Version, Account, Host, Home string
	// Describe says what an operation is about, as long as somebody knows; the text may hold a command and is
	// never stored or logged.
	Describe func(*v1alpha1.Operation) (string, bool)
	// Clients lists the MCP clients, the latest heard first.
	Clients func() []status.Client
	// Log gets what a client cannot be told.
	Log logr.Logger
	// Now is the clock.
	Now func() time.Time
}

// Dashboard serves the page and its endpoints.
type Dashboard struct {
	Options
	started  time.Time
	sessions *sessions
	codes    *codes
	view     *view
	files    map[string]*file
}

// New makes a dashboard. It begins to watch when the first reader comes, and ends with ctx.
func New(ctx context.Context, o Options) (*Dashboard, error) {
	key, err := readKey(o.KeyFile)
	if err != nil {
		return nil, err
	}
	d := &Dashboard{Options: o, started: o.Now(), sessions: newSessions(key, o), codes: &codes{now: o.Now}}
	d.view = newView(ctx, o)
	d.files, err = embedded()
	return d, err
}

// Routes are the endpoints by pattern, for those who have been let in.
type Routes map[string]http.Handler

// Page returns what everybody on this computer may see: the login page and, with the cookie, the page.
func (d *Dashboard) Page() Routes {
	return Routes{
		"/{$}":            d.page(),
		"/ui":             d.page(),
		"/login":          d.static("login.html"),
		"/login/":         d.assets(),
		"/":               d.assets(),
		"POST /api/login": d.sameOrigin(http.HandlerFunc(d.login)),
	}
}

// API returns what needs the cookie or the bearer.
func (d *Dashboard) API() Routes {
	return Routes{
		"GET /api/session":               http.HandlerFunc(d.session),
		"POST /api/logout":               http.HandlerFunc(d.logout),
		"GET /api/watch":                 http.HandlerFunc(d.watch),
		"GET /api/status":                http.HandlerFunc(d.status),
		"POST /api/handoffs/read":        http.HandlerFunc(d.markRead),
		"POST /api/projects/preferences": http.HandlerFunc(d.setPreferences),
		"POST /api/abort":                http.HandlerFunc(d.abort),
	}
}

// Owner returns what needs the socket or the bearer: the cookie does not open it.
func (d *Dashboard) Owner() Routes {
	return Routes{
		"POST /api/login-link": http.HandlerFunc(d.loginLink),
		"POST /api/logout-all": http.HandlerFunc(d.logoutAll),
	}
}

// maxBody bounds the body of a request, in bytes.
const maxBody = 4096

// maxAbortBody is as much as any request of the daemon may have, in bytes: clients rely on none less.
const maxAbortBody = 8_000_000

// readBody decodes a request's body into v. When it cannot, it has answered and returns false.
func readBody(w http.ResponseWriter, r *http.Request, v any) bool { return readUpTo(maxBody, w, r, v) }

func readUpTo(size int64, w http.ResponseWriter, r *http.Request, v any) bool {
	_ = http.NewResponseController(w).SetReadDeadline(time.Now().Add(30 * time.Second)) // a writer that cannot has no slow client either
	err := json.NewDecoder(http.MaxBytesReader(w, r.Body, size)).Decode(v)
	if err == nil {
		return true
	}
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		refuse(w, http.StatusRequestEntityTooLarge, fmt.Sprintf("The request is larger than %d bytes.", size))
		return false
	}
	refuse(w, http.StatusBadRequest, "The request must be a JSON object with the fields that this endpoint takes.")
	return false
}

// reply answers with JSON that is not cached.
func reply(w http.ResponseWriter, code int, v any) {
	h := w.Header()
	h.Set("Content-Type", "application/json")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(v) // the client is told or gone
}

// refuse answers with a sentence that says what is wrong.
func refuse(w http.ResponseWriter, code int, sentence string) {
	reply(w, code, map[string]string{"error": sentence})
}
