package main

import (
	"slices"

	"github.com/go-logr/logr"
)

// lazySink encodes the values of a logger when a line is written, and not when the logger is made: each reconcile gets
// a logger of its own, and hardly any writes a line.
type lazySink struct {
	logr.LogSink
	values []any
}

// Info writes a line.
func (s lazySink) Info(level int, msg string, keysAndValues ...any) {
	s.LogSink.Info(level, msg, s.with(keysAndValues)...)
}

// Error writes a line about a fault.
func (s lazySink) Error(err error, msg string, keysAndValues ...any) {
	s.LogSink.Error(err, msg, s.with(keysAndValues)...)
}

// WithValues returns a sink whose lines have these values too.
func (s lazySink) WithValues(keysAndValues ...any) logr.LogSink {
	return lazySink{LogSink: s.LogSink, values: s.with(keysAndValues)}
}

// WithName returns a sink whose lines have a longer name.
func (s lazySink) WithName(name string) logr.LogSink {
	return lazySink{LogSink: s.LogSink.WithName(name), values: s.values}
}

func (s lazySink) with(keysAndValues []any) []any {
	return append(slices.Clip(s.values), keysAndValues...)
}
