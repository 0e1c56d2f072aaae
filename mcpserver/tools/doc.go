// Package tools holds what clients are told about the tools: names, titles,
// descriptions, schemas, hints and the server's instructions, one Go file and
// one Markdown file a tool. It also checks arguments against those schemas and
// brings them into one canonical form.
//
// It runs nothing and knows no protocol. mcpserver lists the definitions whose
// handlers are registered; tests hold every definition to the same rules.
//
// # Decisions
//
// Output schemas are open objects that require only `output`. Both official
// TypeScript clients check the structured content of error results against
// them too and throw when it does not fit, so a schema that demanded the
// fields of a success would hide every error from the model. What a success
// must carry beyond that is in Definition.Returns and is checked here.
//
// workspace_open is not marked idempotent: without thread_id each call records
// another thread. Keyed tools are not marked so either, although a repeated
// key replays: a client that repeats the call with a new key repeats the
// effect, and a hint that claims too little does no harm.
package tools
