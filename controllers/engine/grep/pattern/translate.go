package pattern

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Errors of patterns that are no mistake elsewhere, with what to do instead.
var (
	errLookAround = errors.New("look-around is not supported; search for a plainer pattern and pick from its matches, or use bash with grep -P")
	errBackRef    = errors.New("back-references are not supported; spell the alternatives out, or use bash with grep -E")
	errLineBreak  = errors.New("a line break cannot be matched, lines are searched one by one; search for a part that stands in one line")
	errAtomic     = errors.New("atomic groups are not supported; write (?: instead of (?>")
	errVerbose    = errors.New("the flag x is not supported; write the pattern without blanks and comments")
	errEnd        = errors.New("a backslash at the end escapes nothing; write \\\\ for a literal backslash, or set literal")
)

// translator rewrites a pattern for regexp/syntax: everything that the two syntaxes mean differently becomes
// an explicit class.
type translator struct {
	rest  string
	out   strings.Builder
	flags flags
	stack []flags // of the groups that are open
	cr    bool    // the pattern speaks of CR
}

type flags struct{ fold, ascii bool }

func translate(pattern string, fold bool) (text string, cr bool, err error) {
	t := &translator{rest: pattern, flags: flags{fold: fold}}
	for t.rest != "" {
		if err := t.next(); err != nil {
			return "", false, err
		}
	}
	return t.out.String(), t.cr, nil
}

// take removes n bytes from the front and returns them.
func (t *translator) take(n int) string {
	s := t.rest[:n]
	t.rest = t.rest[n:]
	return s
}

func (t *translator) next() error {
	switch t.rest[0] {
	case '\\':
		return t.escape()
	case '[':
		s, err := t.class()
		if err != nil {
			return err
		}
		return t.emit(s)
	case '(':
		return t.open()
	case ')':
		if n := len(t.stack); n > 0 {
			t.flags, t.stack = t.stack[n-1], t.stack[:n-1]
		}
		t.out.WriteString(t.take(1))
	case '{':
		if len(t.rest) > 2 && t.rest[1] == ',' && '0' <= t.rest[2] && t.rest[2] <= '9' { // {,n} has no lower bound
			t.take(1)
			t.out.WriteString("{0")
			return nil
		}
		t.out.WriteString(t.take(1))
	case '\n':
		return errLineBreak
	case '\r':
		t.cr = true
		t.out.WriteString(t.take(1))
	default:
		_, n := utf8.DecodeRuneInString(t.rest)
		t.out.WriteString(t.take(n))
	}
	return nil
}

// open reads the start of a group.
func (t *translator) open() error {
	t.stack = append(t.stack, t.flags)
	if !strings.HasPrefix(t.rest, "(?") {
		t.take(1)
		t.out.WriteString("(?:")
		return nil
	}
	body := t.rest[2:]
	for _, p := range []string{"=", "!", "<=", "<!"} {
		if strings.HasPrefix(body, p) {
			return errLookAround
		}
	}
	switch {
	case strings.HasPrefix(body, ">"):
		return errAtomic
	case strings.HasPrefix(body, "P="), strings.HasPrefix(body, "P>"):
		return errBackRef
	case strings.HasPrefix(body, "P<"), strings.HasPrefix(body, "<"):
		end := strings.IndexByte(t.rest, '>')
		if end < 0 {
			return errors.New("the name of a group is not closed; add >")
		}
		t.take(end + 1)
		t.out.WriteString("(?:")
		return nil
	}
	return t.setFlags()
}

// setFlags reads "(?flags)" or "(?flags:".
func (t *translator) setFlags() error {
	end := strings.IndexAny(t.rest, ":)")
	if end < 0 {
		return errors.New("a group is not closed; add ) or write \\( for a literal parenthesis")
	}
	head := t.take(end + 1)
	on := true
	var kept strings.Builder
	for _, c := range head[2:end] {
		switch c {
		case '-':
			on = false
		case 'i':
			t.flags.fold = on
		case 'u':
			t.flags.ascii = !on
			continue
		case 'R':
			continue
		case 'm', 's', 'U':
		case 'x':
			if on {
				return errVerbose
			}
			continue
		default:
			return fmt.Errorf("unknown flag %q in a group; known are i, m, s, u, U", c)
		}
		kept.WriteRune(c)
	}
	if head[end] == ')' { // holds until the end of the group around it
		t.stack = t.stack[:len(t.stack)-1]
		if k := strings.TrimSuffix(kept.String(), "-"); k != "" {
			t.out.WriteString("(?" + k + ")")
		}
		return nil
	}
	t.out.WriteString("(?" + strings.TrimSuffix(kept.String(), "-") + ":")
	return nil
}

// emit writes a class. Its cases are folded already where they have to be.
func (t *translator) emit(s set) error {
	if len(s) == 1 && s[0].lo == '\n' && s[0].hi == '\n' {
		return errLineBreak
	}
	if t.flags.fold {
		t.out.WriteString("(?-i:" + s.String() + ")")
	} else {
		t.out.WriteString(s.String())
	}
	return nil
}

// escape reads a backslash outside of a class.
func (t *translator) escape() error {
	if len(t.rest) < 2 {
		return errEnd
	}
	switch c := t.rest[1]; c {
	case 'b', 'B':
		t.take(2)
		if strings.HasPrefix(t.rest, "{start}") || strings.HasPrefix(t.rest, "{end}") {
			t.take(strings.IndexByte(t.rest, '}') + 1)
		}
		t.out.WriteString(`\` + string(c))
		return nil
	case '<', '>':
		t.take(2)
		t.out.WriteString(`\b`)
		return nil
	case 'A', 'z':
		t.out.WriteString(t.take(2))
		return nil
	case 'k':
		return errBackRef
	}
	s, single, err := t.escaped()
	if err != nil {
		return err
	}
	if single < 0 {
		return t.emit(s)
	}
	switch single {
	case '\n':
		return errLineBreak
	case '\r':
		t.cr = true
	}
	fmt.Fprintf(&t.out, `\x{%x}`, single)
	return nil
}

// escaped reads a backslash that stands for one character or for a set; single is -1 for a set.
func (t *translator) escaped() (s set, single rune, err error) {
	if len(t.rest) < 2 {
		return nil, 0, errEnd
	}
	t.take(1)
	r, n := utf8.DecodeRuneInString(t.rest)
	t.take(n)
	switch r {
	case 'd', 'D', 's', 'S', 'w', 'W':
		return t.perl(r), -1, nil
	case 'p', 'P':
		s, err := t.property(r == 'P')
		return s, -1, err
	case 'a':
		return nil, '\a', nil
	case 'f':
		return nil, '\f', nil
	case 't':
		return nil, '\t', nil
	case 'n':
		return nil, '\n', nil
	case 'r':
		return nil, '\r', nil
	case 'v':
		return nil, '\v', nil
	case 'x', 'u', 'U':
		r, err := t.hex(map[rune]int{'x': 2, 'u': 4, 'U': 8}[r])
		return nil, r, err
	}
	switch {
	case '0' <= r && r <= '9':
		return nil, 0, errBackRef
	case 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
		return nil, 0, fmt.Errorf("unknown escape \\%c; write \\\\ for a literal backslash", r)
	}
	return nil, r, nil
}

func (t *translator) perl(r rune) set {
	var s set
	switch r {
	case 'd', 'D':
		s = digits()
		if t.flags.ascii {
			s = posix["digit"]
		}
	case 's', 'S':
		s = blanks()
		if t.flags.ascii {
			s = posix["space"]
		}
	case 'w', 'W':
		s = words()
		if t.flags.ascii {
			s = posix["word"]
		}
	}
	if r < 'a' {
		return s.negate()
	}
	return s
}

func (t *translator) property(negate bool) (set, error) {
	name := ""
	if strings.HasPrefix(t.rest, "{") {
		end := strings.IndexByte(t.rest, '}')
		if end < 0 {
			return nil, errors.New("the name after \\p is not closed; add }")
		}
		name = t.take(end + 1)[1:end]
	} else if t.rest != "" {
		_, n := utf8.DecodeRuneInString(t.rest)
		name = t.take(n)
	}
	if rest, ok := strings.CutPrefix(name, "^"); ok {
		name, negate = rest, !negate
	}
	s, ok := property(name)
	if !ok {
		return nil, fmt.Errorf("unknown Unicode property %q", name)
	}
	if t.flags.fold {
		s = s.folded()
	}
	if negate {
		s = s.negate()
	}
	return s, nil
}

// hex reads a number of the given number of digits, or one in braces.
func (t *translator) hex(digits int) (rune, error) {
	var text string
	if strings.HasPrefix(t.rest, "{") {
		end := strings.IndexByte(t.rest, '}')
		if end < 0 {
			return 0, errors.New("a hexadecimal number is not closed; add }")
		}
		text = t.take(end + 1)[1:end]
	} else {
		if len(t.rest) < digits {
			return 0, fmt.Errorf("a hexadecimal number needs %d digits", digits)
		}
		text = t.take(digits)
	}
	n, err := strconv.ParseUint(text, 16, 32)
	if err != nil || n > utf8.MaxRune {
		return 0, fmt.Errorf("%q is not the hexadecimal number of a character", text)
	}
	return rune(n), nil
}
