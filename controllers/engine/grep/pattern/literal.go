package pattern

import (
	"bytes"
	"regexp/syntax"
	"unicode/utf8"
)

// literal is a text that every matching line contains.
type literal struct {
	text []byte // in lower case if fold is set
	fold bool   // ASCII letters match in both cases
	// whole is set if the pattern is this literal and nothing else.
	whole bool
	// at is the place in text of its rarest byte, and rare and other are that byte in both cases.
	at          int
	rare, other byte
}

// required finds the best literal of a pattern; ok is false if there is none worth looking for.
func required(re *syntax.Regexp) (l literal, ok bool) {
	l, ok = best(re)
	if !ok || len(l.text) == 1 && commonness[l.text[0]] > 128 && !l.whole {
		return literal{}, false
	}
	for i, b := range l.text {
		if i == 0 || l.weight(b) < l.weight(l.text[l.at]) {
			l.at = i
		}
	}
	l.rare = l.text[l.at]
	l.other = l.rare
	if l.fold && 'a' <= l.rare && l.rare <= 'z' {
		l.other -= 'a' - 'A'
	}
	return l, true
}

func (l *literal) weight(b byte) int {
	w := int(commonness[b])
	if l.fold && 'a' <= b && b <= 'z' {
		w += int(commonness[b-'a'+'A'])
	}
	return w
}

func best(re *syntax.Regexp) (literal, bool) {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase != 0 {
			return foldedLiteral(re.Rune)
		}
		text := []byte(string(re.Rune))
		return literal{text: text, whole: true}, len(text) > 0
	case syntax.OpCapture:
		return best(re.Sub[0])
	case syntax.OpPlus:
		l, ok := best(re.Sub[0])
		l.whole = false
		return l, ok
	case syntax.OpRepeat:
		if re.Min == 0 {
			return literal{}, false
		}
		l, ok := best(re.Sub[0])
		l.whole = false
		return l, ok
	case syntax.OpConcat:
		var longest literal
		found := false
		for _, sub := range re.Sub {
			if l, ok := best(sub); ok && (!found || len(l.text) > len(longest.text)) {
				longest, found = l, true
			}
		}
		longest.whole = false
		return longest, found
	}
	return literal{}, false
}

// foldedLiteral takes the longest run of letters whose cases are both ASCII: k and s have a third one.
func foldedLiteral(runes []rune) (literal, bool) {
	from, to := 0, 0
	for i := 0; i < len(runes); {
		j := i
		for j < len(runes) && plainFold(runes[j]) {
			j++
		}
		if j-i > to-from {
			from, to = i, j
		}
		i = j + 1
	}
	if from == to {
		return literal{}, false
	}
	text := bytes.ToLower([]byte(string(runes[from:to])))
	return literal{text: text, fold: true, whole: to-from == len(runes)}, true
}

func plainFold(r rune) bool {
	return r < utf8.RuneSelf && r != 'k' && r != 'K' && r != 's' && r != 'S'
}

// index is the place of the first occurrence in text, -1 if there is none.
func (l *literal) index(text []byte) int {
	if !l.fold {
		return l.exact(text)
	}
	lower, upper := -1, -1 // next places of the rare byte in each case, -1 if not known
	for at := l.at; at < len(text); {
		if lower < at {
			lower = indexFrom(text, at, l.rare)
		}
		if l.other == l.rare {
			upper = lower
		} else if upper < at {
			upper = indexFrom(text, at, l.other)
		}
		at = min(lower, upper)
		start := at - l.at
		if start+len(l.text) > len(text) {
			return -1
		}
		if equalFold(text[start:start+len(l.text)], l.text) {
			return start
		}
		at++
	}
	return -1
}

func indexFrom(text []byte, at int, b byte) int {
	if n := bytes.IndexByte(text[at:], b); n >= 0 {
		return at + n
	}
	return len(text)
}

// exact looks for the rarest byte and falls back to the general search if that turns up too often.
func (l *literal) exact(text []byte) int {
	misses := 0
	for at := l.at; at < len(text); at++ {
		n := bytes.IndexByte(text[at:], l.rare)
		if n < 0 {
			return -1
		}
		at += n
		start := at - l.at
		if start+len(l.text) > len(text) {
			return -1
		}
		if string(text[start:start+len(l.text)]) == string(l.text) {
			return start
		}
		if misses++; misses > 8+(at>>5) {
			if n := bytes.Index(text[start+1:], l.text); n >= 0 {
				return start + 1 + n
			}
			return -1
		}
	}
	return -1
}

func equalFold(text, lower []byte) bool {
	for i, b := range lower {
		c := text[i]
		if c != b && (b < 'a' || b > 'z' || c != b-'a'+'A') {
			return false
		}
	}
	return true
}

// commonness ranks bytes by how often they occur in source text: 255 is the most common.
var commonness = func() (rank [256]byte) {
	for i := range rank {
		rank[i] = 60 // not ASCII
	}
	for i := range 32 {
		rank[i] = 1
	}
	const order = " etnraiosl\ncdupmf\tghb.,()_y\"v=w/-:xk;STE{}CIANR*[]P0OLDMFB1'Uj>GqVz&2H<+W!3KY`4\\568|XQ7J$9#Z@?%^~"
	for i := range len(order) {
		rank[order[i]] = byte(255 - 2*i)
	}
	return rank
}()
