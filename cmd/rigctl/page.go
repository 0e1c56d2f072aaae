package main

import (
	"fmt"
	"os"
	"strings"
	"unicode"

	"golang.org/x/sys/unix"
	"golang.org/x/text/width"
)

// page is text for people, line by line. Strings that come from others are freed of control characters, which a
// terminal would obey; what is styled is coloured where that is wanted.
type page struct {
	colour bool
	lines  []string
}

// styled is a text that has a colour on a terminal.
type styled struct{ text, code string }

func bold(s string) styled   { return styled{s, "1"} }
func red(s string) styled    { return styled{s, "31"} }
func green(s string) styled  { return styled{s, "32"} }
func yellow(s string) styled { return styled{s, "1;33"} }

// add adds lines; args are as for Printf.
func (p *page) add(format string, args ...any) {
	for i, arg := range args {
		switch a := arg.(type) {
		case string:
			args[i] = clean(a)
		case styled:
			args[i] = clean(a.text)
			if p.colour && a.code != "" {
				args[i] = "\x1b[" + a.code + "m" + clean(a.text) + "\x1b[m"
			}
		}
	}
	p.lines = append(p.lines, strings.Split(fmt.Sprintf(format, args...), "\n")...)
}

// clean replaces control characters other than line ends.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) && r != '\n' {
			return '·'
		}
		return r
	}, s)
}

// size is how many lines and columns a text may have; 0 stands for any number.
type size struct{ rows, columns int }

// terminalSize returns the size of the terminal that f is, and false if it is none.
func terminalSize(f any) (size, bool) {
	file, ok := f.(*os.File)
	if !ok {
		return size{}, false
	}
	w, err := unix.IoctlGetWinsize(int(file.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return size{}, false
	}
	return size{int(w.Row), int(w.Col)}, true
}

// coloured says whether a terminal is to show colours.
func coloured() bool { return os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" }

// fitted returns the lines as they fit into a size: long ones are cut, and the last one tells how many more there are.
func (p *page) fitted(to size) []string {
	lines := p.lines
	if to.rows > 0 && len(lines) > to.rows {
		lines = append(lines[:to.rows-1:to.rows-1], fmt.Sprintf("… and %d lines more: rigctl status | less", len(lines)-to.rows+1))
	}
	if to.columns == 0 {
		return lines
	}
	var cut []string
	for _, line := range lines {
		cut = append(cut, cutLine(line, to.columns))
	}
	return cut
}

// cutLine cuts a line to a number of columns. Our own colours take none.
func cutLine(line string, columns int) string {
	used, keep, escape := 0, 0, false
	for i, r := range line {
		switch {
		case r == '\x1b':
			escape = true
		case escape:
			escape = r != 'm'
		default:
			if used += runeWidth(r); used > columns {
				text := line[:keep] + "…"
				if strings.Contains(line, "\x1b") {
					text += "\x1b[m"
				}
				return text
			}
			if used < columns {
				keep = i + len(string(r))
			}
		}
	}
	return line
}

func runeWidth(r rune) int {
	switch width.LookupRune(r).Kind() {
	case width.EastAsianWide, width.EastAsianFullwidth:
		return 2
	}
	if unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf) {
		return 0
	}
	return 1
}
