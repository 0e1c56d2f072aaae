// Package dashboard serves the web page that a person keeps open beside the assistant, and what that page needs:
// a login by one-time link, one stream of everything that changes, and the status document. It is a client of the
// API like any other: it reads and watches objects through controller-runtime's client and writes spec fields. The
// page itself is in web (sources) and web/dist (built, embedded). cmd/rig-bridge mounts it; rigctl status reads
// its status document.
//
// # What is served
//
//	GET  /, /ui              the page (web/dist/index.html); without a login the login page, with status 401
//	GET  /assets/NAME        web/dist/assets, names with a hash in them: cached for a year, ETag
//	GET  /NAME               any other file of web/dist, such as a worker or an icon: ETag, asked for again each time
//	GET  /login              the login page; it takes the one-time code from the fragment
//	POST /api/login          {code}: exchanges a one-time code for the cookie; 204, or 401 {error}
//	POST /api/logout         ends this browser's login; 204
//	GET  /api/session        {expiresAt}, or 401: is this browser logged in?
//	GET  /api/watch          the stream, see below
//	GET  /api/status         the status document, package api/status: for scripts and rigctl; the page does not poll it
//	POST /api/handoffs/read            {handoff_id}
//	POST /api/projects/preferences     {project_id, desktop_notifications}
//	POST /api/abort                    {workspace_id, command_id}
//	POST /api/login-link     {fragment}: {url, expiresInSeconds}; over the unix socket or with the bearer, never with the cookie
//	POST /api/logout-all     ends every login; over the unix socket or with the bearer, never with the cookie
//
// With the cookie the page also reads and writes /apis/rigbridge.dev/v1alpha1/namespaces/default/...: lists with
// field selectors (spec.threadRef.name, spec.workspaceRef.name, status.active), PATCH (application/merge-patch+json)
// of spec.cancel and spec.cancelledBy of an operation (on a finished one: its leftovers are stopped), of
// spec.acknowledged of a handoff, of spec.notifications of a project, DELETE of a workspace (closes it), and of
// an operation, from memory while they last: operations/{name}/log?follow=true&cursor=N (text/plain, as it is
// printed), operations/{name}/request (the arguments), operations/{name}/result ({text, details};
// details of an edit hold diff and patch). With optional=true what is not in memory is 204 instead of 410.
//
// Errors of /api are JSON, {"error": "a sentence for people"}; those of /apis are Kubernetes Status objects, and
// 401 and 403 of both may be the JSON-RPC error object of the guard. A page goes by the HTTP status.
//
// # The stream
//
// A browser opens six connections to a host at most, over all of its tabs, and one watch for each kind would use
// them up with the first tab. So GET /api/watch carries all kinds in one response, one JSON object a line:
//
//	{"type":"HELLO","version":"…","startedAt":ms,"now":ms,"account":"…","host":"…","home":"…"}
//	{"type":"MODIFIED","object":{apiVersion, kind, metadata, spec, status},"description":"…"}
//	{"type":"SYNCED"}
//	{"type":"DELETED","object":{kind, metadata: {name, uid}}}
//	{"type":"CLIENTS","clients":[{name, version, userAgent, lastTime, lastMethod, lastTool, requests}]}
//	{"type":"HEARTBEAT","now":ms}
//
// MODIFIED is an object that is new or has changed, whole (without managedFields). The first ones, up to SYNCED,
// are the present; what the reader knows from an earlier connection and was not sent again is gone. After that come
// changes: several of one object within updateInterval are one line with the latest state. DELETED means that it
// has left the view: it was deleted, or is older than what the view keeps. description belongs to operations: the
// command, or the tool and what it looks at; after a restart only the tool and its paths. Times of the stream's own
// are milliseconds since 1970. CLIENTS is the last that was heard of each MCP client, at the start and when it
// changed, at most once a second. HEARTBEAT comes after heartbeatInterval without another line: a reader that hears
// nothing for three of them has lost the daemon.
//
// The view holds all projects, threads, workspaces and tunnels; runs that are working and the newest 100 others;
// handoffs that nobody has read and the newest 100 others; operations that are not over or left processes running
// that still do, and of each open workspace the newest 20 others. Older ones are read by list when somebody looks at them.
//
// There is no resumption: the present is sent again with each connection. After a restart of the daemon read-only
// operations are gone without an event, so a reader that went on from a resourceVersion would show them for ever;
// and the present of 5,000 threads costs a few milliseconds on one machine. A reader reconnects when the response
// ends, with a growing delay up to a few seconds, and shows since when it is offline.
//
// A page holds the stream in a SharedWorker (one connection for all tabs) or, where there is none, one a tab. It
// follows outputs only in a visible tab and at most three at a time. On 401 from anything it reloads itself: the
// login page is then served at the same address, keeps the fragment and comes back by itself once the browser is
// logged in.
//
// # Who gets in
//
// rigctl dashboard asks over the socket for a link, http://127.0.0.1:PORT/login#code=CODE&FRAGMENT. The code works
// once and for 60 seconds. It is in the fragment, which browsers neither send nor put into Referer, so it is in no
// log, and no link preview that fetches the address uses it up, as a code in the query would be by the first GET.
// The price is a script on the login page; the dashboard is nothing without scripts anyway. The script removes the
// code from the address and the history before it sends it, in the body of a POST. FRAGMENT is kept: thread=ID,
// project=ID, operation=NAME or handoff=ID, for the page's own address /#FRAGMENT.
//
// The cookie holds when it was issued and a random id, and their HMAC under a key of the state directory, so it is
// valid after a restart without a list of sessions. It is HttpOnly, SameSite=Strict and Path=/, lasts sessionAge
// and is renewed while it is used. rigctl dashboard --revoke makes a new key: every login and every stream ends.
// A browser sends cookies to all ports of a host, so the cookie's name has the port in it, SameSite is no
// protection against pages of other ports, and every request that came by cookie is refused unless its Origin, or
// Sec-Fetch-Site where there is no Origin, is ours; reading without either (typed into the address bar) is let
// through. The cookie does not open /mcp, /metrics or the two endpoints that make and end logins.
//
// Invariants:
//   - no code and no cookie is in a log, an error or an address that the daemon sees;
//   - text of clients goes out as JSON or text/plain with nosniff; the page's policy allows no inline script or style;
//   - a reader that does not read costs bounded memory: its changes are coalesced, and one too far behind is cut off.
package dashboard
