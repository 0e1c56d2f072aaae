package glob

import (
	"strings"
	"unicode/utf8"
)

// parseClass reads a class that begins at s[0] == '[' and returns the bytes it takes.
func parseClass(s string, d Dialect) (token, int, error) {
	t := token{op: opClass}
	i := 1
	if i < len(s) && (s[i] == '!' || s[i] == '^') {
		t.negate = true
		i++
	}
	for first := true; ; first = false {
		if i >= len(s) {
			return t, 0, ErrUnclosedClass
		}
		if s[i] == ']' && !first {
			return t, i + 1, nil
		}
		if d.Git && strings.HasPrefix(s[i:], "[:") {
			if n := t.addNamed(s[i:]); n != 0 {
				if n < 0 {
					return t, 0, ErrUnclosedClass
				}
				i += n
				continue
			}
		}
		lo, n := classChar(s[i:], d)
		if n == 0 {
			return t, 0, ErrUnclosedClass
		}
		i += n
		hi := lo
		if i+1 < len(s) && s[i] == '-' && s[i+1] != ']' {
			hi, n = classChar(s[i+1:], d)
			if n == 0 {
				return t, 0, ErrUnclosedClass
			}
			i += 1 + n
		}
		if hi < lo {
			if !d.Git {
				return t, 0, ErrBadRange
			}
			continue // an empty range is no mistake in an ignore file
		}
		t.set = append(t.set, span{lo, hi})
	}
}

func classChar(s string, d Dialect) (rune, int) {
	if !d.Git {
		return utf8.DecodeRuneInString(s)
	}
	if s == "" {
		return 0, 0
	}
	if s[0] == '\\' {
		if len(s) < 2 {
			return 0, 0
		}
		return rune(s[1]), 2
	}
	return rune(s[0]), 1
}

var named = map[string][]span{
	"alnum":  {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
	"alpha":  {{'A', 'Z'}, {'a', 'z'}},
	"blank":  {{' ', ' '}, {'\t', '\t'}},
	"cntrl":  {{0, 31}, {127, 127}},
	"digit":  {{'0', '9'}},
	"graph":  {{33, 126}},
	"lower":  {{'a', 'z'}},
	"print":  {{32, 126}},
	"punct":  {{33, 47}, {58, 64}, {91, 96}, {123, 126}},
	"space":  {{9, 13}, {' ', ' '}},
	"upper":  {{'A', 'Z'}},
	"xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
}

// addNamed reads "[:name:]" at the start of s. It returns the bytes used, 0 if the text is an ordinary
// bracket after all, and -1 if the name is unknown, which makes the whole pattern void.
func (t *token) addNamed(s string) int {
	end := strings.IndexByte(s[2:], ']')
	if end < 1 || s[2+end-1] != ':' {
		return 0
	}
	set, ok := named[s[2:2+end-1]]
	if !ok {
		return -1
	}
	t.set = append(t.set, set...)
	return 2 + end + 1
}
