package main

import (
	"io"
	"strings"
	"unicode"
)

// printable passes text on without control characters: commands and summaries come from others, and a terminal
// would obey what they hold.
type printable struct{ io.Writer }

// Write writes all of p but for its control characters.
func (w printable) Write(p []byte) (int, error) {
	clean := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return '·'
		}
		return r
	}, string(p))
	if _, err := io.WriteString(w.Writer, clean); err != nil {
		return 0, err
	}
	return len(p), nil
}
