package transport

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// ClientInfo is the last that was heard of one client, so that a user can tell
// a silent host from a broken bridge. Names are what clients say of themselves.
type ClientInfo struct {
	// Name and Version are the client's own (clientInfo); Name is empty until
	// it has said one.
	Name, Version string
	// UserAgent is the HTTP header of the last request, or "stdio".
	UserAgent string
	// LastTime is when the last request arrived.
	LastTime time.Time
	// LastMethod is its JSON-RPC method, LastTool the tool if it was a call.
	LastMethod, LastTool string
	// Requests counts them since the daemon started; notifications are none.
	Requests int64
}

const (
	maxClients       = 64
	maxNamedSessions = 1024
	maxClientText    = 120
)

// clients keeps ClientInfo for the latest maxClients clients.
type clients struct {
	mu    sync.Mutex
	now   func() time.Time
	byID  map[clientID]*ClientInfo
	names *latest[string, mcp.Implementation] // by session id
	// levels are the least severe log messages that sessions want. Our tools
	// send none; a server that declares logging may.
	levels *latest[string, mcp.LoggingLevel]
}

// clientID is the name and version of a client that has said them, the user
// agent of another.
type clientID struct{ name, version, agent string }

func newClients(now func() time.Time) *clients {
	return &clients{
		now: now, byID: make(map[clientID]*ClientInfo),
		names:  newLatest[string, mcp.Implementation](maxNamedSessions),
		levels: newLatest[string, mcp.LoggingLevel](maxNamedSessions),
	}
}

// saw records a request and returns how the client calls itself.
func (c *clients) saw(agent, session string, info *mcp.Implementation, msg message) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if info == nil {
		if known, ok := c.names.values[session]; ok {
			info = &known
		} else {
			info = &mcp.Implementation{}
		}
	}
	one := c.of(clip(info.Name), clip(info.Version), clip(agent))
	one.LastTime, one.LastMethod, one.LastTool = c.now(), clip(msg.method), ""
	if msg.call.Name != nil {
		one.LastTool = clip(*msg.call.Name)
	}
	one.Requests++
	return cmp.Or(clip(info.Name), clip(agent))
}

// of returns the client that made a request. A client is known by its name and
// version, whatever library it sends with. A request without a name is that of
// the only named client with the same user agent, or else of a nameless one,
// who may say a name later.
func (c *clients) of(name, version, agent string) *ClientInfo {
	nameless := clientID{agent: agent}
	id := clientID{name: name, version: version}
	same := c.named(agent)
	if name == "" {
		if len(same) == 1 {
			return same[0]
		}
		id = nameless
	}
	one := c.byID[id]
	if one == nil {
		one = &ClientInfo{}
		if before := c.byID[nameless]; before != nil && len(same) == 0 {
			*one = *before
			delete(c.byID, nameless)
		}
		c.makeRoom()
		c.byID[id] = one
	}
	one.Name, one.Version, one.UserAgent = name, id.version, agent
	return one
}

// named are the clients with a name whose latest request came from agent.
func (c *clients) named(agent string) (all []*ClientInfo) {
	for id, one := range c.byID {
		if id.name != "" && one.UserAgent == agent {
			all = append(all, one)
		}
	}
	return all
}

// name remembers who opened a session.
func (c *clients) name(session string, info mcp.Implementation) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names.put(session, mcp.Implementation{Name: clip(info.Name), Version: clip(info.Version)})
}

// setLevel remembers from what severity on a session wants log messages.
func (c *clients) setLevel(session string, level mcp.LoggingLevel) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.levels.put(session, level)
}

// level is what setLevel was told, or else the severity of errors.
func (c *clients) level(session string) mcp.LoggingLevel {
	c.mu.Lock()
	defer c.mu.Unlock()
	return cmp.Or(c.levels.values[session], mcp.LoggingLevelError)
}

// makeRoom drops the client that was silent longest.
func (c *clients) makeRoom() {
	if len(c.byID) < maxClients {
		return
	}
	var oldest clientID
	var since time.Time
	for id, one := range c.byID {
		if since.IsZero() || one.LastTime.Before(since) {
			oldest, since = id, one.LastTime
		}
	}
	delete(c.byID, oldest)
}

// list returns a copy, the latest first.
func (c *clients) list() []ClientInfo {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := make([]ClientInfo, 0, len(c.byID))
	for _, one := range c.byID {
		out = append(out, *one)
	}
	slices.SortFunc(out, func(a, b ClientInfo) int {
		return cmp.Or(b.LastTime.Compare(a.LastTime), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UserAgent, b.UserAgent))
	})
	return out
}

// clip bounds text that a client chose, at a character boundary.
func clip(s string) string {
	if len(s) <= maxClientText {
		return s
	}
	cut := maxClientText
	for cut > 0 && s[cut]&0xC0 == 0x80 {
		cut--
	}
	return s[:cut]
}
