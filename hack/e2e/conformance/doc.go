// Command conformance serves what the public MCP conformance suite asks for —
// its tools, prompts and resources, known by name — on our own transport, so
// that the suite judges the transport where the product has nothing to show:
// content of every kind, log messages, questions to the client, multi-round
// results. Its tests run the suite against it and against the daemon.
//
// Tools take two ways, as the transport has two: the plain ones are answered by
// Options.Call, as the product's are, the ones that talk to the client while
// they run are left to the MCP library.
//
// expected.yaml lists the checks that fail and why; one that passes after all
// fails the test.
package main
