// Package security decides who gets in before anything of a request is read:
// the bearer token and its file, Host and Origin, the health endpoints and the
// well-known paths of OAuth. All of it is ordinary middleware around
// http.Handler, for the MCP endpoint and for the API alike.
//
// The token appears in no log, error or URL; it is compared in constant time.
package security
