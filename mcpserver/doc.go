// Package mcpserver is how assistants ask: it turns tool calls into Operations
// and their outcomes into tool results. It never runs a tool; it meets the
// controllers in objects only.
//
// From the outside in: transport carries MCP, Server checks a call and finds
// its handler, the handlers create objects and wait for them, Success and
// Failure render what came out. The definitions of the tools are in tools.
package mcpserver
