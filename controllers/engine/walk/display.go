package walk

import (
	"strings"
	"unicode/utf8"

	"github.com/rigbridge/rigbridge/controllers/engine"
)

// Display makes a path fit for one row of a result: line breaks are escaped and bytes that are not UTF-8 are
// shown as U+FFFD.
func Display(path string) string {
	if strings.ContainsAny(path, "\n\r") {
		path = strings.NewReplacer("\n", `\n`, "\r", `\r`).Replace(path)
	}
	return ValidText(path)
}

// ValidText is engine.ValidText with a quick way for the usual case.
func ValidText(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return engine.ValidText(s)
}
