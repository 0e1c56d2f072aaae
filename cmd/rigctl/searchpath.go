package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/rigbridge/rigbridge/cmd/internal/searchpath"
)

// lookAtPath tells where the daemon finds programs, each directory with the lists that it came from.
func (c *connection) lookAtPath(ctx context.Context) finding {
	var r searchpath.Report
	ctx, cancel := context.WithTimeout(ctx, 4*answerWithin) // the daemon may still be asking the login shell
	defer cancel()
	if err := c.ask(ctx, http.MethodGet, searchpath.Route, nil, &r); err != nil {
		return finding{err: fmt.Errorf("where commands find programs is not known: %w", err)}
	}
	if r.Problem != "" {
		return finding{err: fmt.Errorf("commands have no PATH from the login shell: %s", r.Problem)}
	}
	var told strings.Builder
	fmt.Fprintf(&told, "commands find programs in %s, in this order:", count(len(r.Parts), "place"))
	for _, p := range r.Parts {
		from := make([]string, len(p.Sources))
		for i, source := range p.Sources {
			from[i] = string(source)
		}
		fmt.Fprintf(&told, "\n    %s (%s)", p.Dir, strings.Join(from, ", "))
	}
	if len(r.Dropped) > 0 {
		fmt.Fprintf(&told, "\n    not in: %s (relative)", strings.Join(r.Dropped, ", "))
	}
	return finding{good: told.String()}
}
