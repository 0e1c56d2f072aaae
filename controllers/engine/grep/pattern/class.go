package pattern

import (
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

var errUnclosedClass = errors.New("a character class is not closed; add ] or write \\[ for a literal bracket")

// class reads a bracketed class, which may nest and combine with && (both), -- (without) and ~~ (one of two).
func (t *translator) class() (set, error) {
	t.take(1)
	negate := false
	if strings.HasPrefix(t.rest, "^") {
		t.take(1)
		negate = true
	}
	var left set // result of the operations so far
	op := ""
	var items set
	for first := true; ; first = false {
		if t.rest == "" {
			return nil, errUnclosedClass
		}
		if t.rest[0] == ']' && !first {
			t.take(1)
			s := combine(left, op, t.fold(items))
			if negate {
				s = s.negate()
			}
			return s, nil
		}
		if o := setOperator(t.rest); o != "" && !first {
			t.take(2)
			left, op, items = combine(left, op, t.fold(items)), o, nil
			continue
		}
		s, err := t.classItem()
		if err != nil {
			return nil, err
		}
		items = items.union(s)
	}
}

func setOperator(s string) string {
	for _, o := range []string{"&&", "--", "~~"} {
		if strings.HasPrefix(s, o) {
			return o
		}
	}
	return ""
}

func combine(left set, op string, right set) set {
	switch op {
	case "&&":
		return left.intersect(right)
	case "--":
		return left.minus(right)
	case "~~":
		return left.union(right).minus(left.intersect(right))
	}
	return right
}

func (t *translator) fold(s set) set {
	if t.flags.fold {
		return s.folded()
	}
	return s
}

// classItem reads a nested class, a named class, an escape, a range or a character.
func (t *translator) classItem() (set, error) {
	if name, ok := posixName(t.rest); ok {
		t.take(len("[:") + len(name) + len(":]"))
		name, negate := strings.CutPrefix(name, "^")
		s, ok := posix[name]
		if !ok {
			return nil, fmt.Errorf("unknown class [:%s:]", name)
		}
		if negate {
			s = s.negate()
		}
		return s, nil
	}
	if t.rest[0] == '[' {
		return t.class()
	}
	s, lo, err := t.classChar()
	if err != nil || lo < 0 {
		return s, err
	}
	if len(t.rest) < 2 || t.rest[0] != '-' || t.rest[1] == ']' || t.rest[1] == '-' {
		return setOf(lo), nil
	}
	t.take(1)
	_, hi, err := t.classChar()
	if err != nil {
		return nil, err
	}
	if hi < lo {
		return nil, errors.New("a range in a character class must go from a smaller to a larger character")
	}
	return set{{lo, hi}}, nil
}

// posixName finds the name, with a ^ in front perhaps, if s begins like [:name:].
func posixName(s string) (string, bool) {
	rest, ok := strings.CutPrefix(s, "[:")
	if !ok {
		return "", false
	}
	name, _, ok := strings.Cut(rest, ":]")
	letters := strings.TrimPrefix(name, "^")
	return name, ok && letters != "" && strings.Trim(letters, "abcdefghijklmnopqrstuvwxyz") == ""
}

// classChar reads one character, or a set by escape with single -1.
func (t *translator) classChar() (s set, single rune, err error) {
	if t.rest == "" {
		return nil, 0, errUnclosedClass
	}
	if t.rest[0] == '\\' {
		if len(t.rest) > 1 && t.rest[1] == 'b' { // backspace
			t.take(2)
			return nil, '\b', nil
		}
		if s, single, err = t.escaped(); single == '\r' {
			t.cr = true
		}
		return s, single, err
	}
	r, n := utf8.DecodeRuneInString(t.rest)
	t.take(n)
	return nil, r, nil
}
