// Package goclients tells one assistant's visit through the public Go clients of
// MCP, against the real daemon. It is apart from the other end-to-end tests
// because one of the clients comes with the library that the server uses.
package goclients
