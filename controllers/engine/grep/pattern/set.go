package pattern

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"unicode"
)

// set is a set of runes as sorted, disjoint, non-adjacent ranges.
type set []span

type span struct{ lo, hi rune }

func setOf(runes ...rune) set {
	var s set
	for _, r := range runes {
		s = append(s, span{r, r})
	}
	return s.clean()
}

func fromTables(tables ...*unicode.RangeTable) set {
	var s set
	for _, t := range tables {
		for _, r := range t.R16 {
			s = s.addStride(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			s = s.addStride(rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return s.clean()
}

func (s set) addStride(lo, hi, stride rune) set {
	if stride == 1 {
		return append(s, span{lo, hi})
	}
	for r := lo; r <= hi; r += stride {
		s = append(s, span{r, r})
	}
	return s
}

// clean sorts and joins the ranges.
func (s set) clean() set {
	slices.SortFunc(s, func(a, b span) int { return int(a.lo - b.lo) })
	out := s[:0]
	for _, r := range s {
		if n := len(out); n > 0 && r.lo <= out[n-1].hi+1 {
			out[n-1].hi = max(out[n-1].hi, r.hi)
			continue
		}
		out = append(out, r)
	}
	return out
}

func (s set) union(o set) set { return append(slices.Clone(s), o...).clean() }

func (s set) negate() set {
	var out set
	next := rune(0)
	for _, r := range s {
		if r.lo > next {
			out = append(out, span{next, r.lo - 1})
		}
		next = r.hi + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, span{next, unicode.MaxRune})
	}
	return out
}

func (s set) intersect(o set) set {
	var out set
	for i, j := 0, 0; i < len(s) && j < len(o); {
		lo, hi := max(s[i].lo, o[j].lo), min(s[i].hi, o[j].hi)
		if lo <= hi {
			out = append(out, span{lo, hi})
		}
		if s[i].hi < o[j].hi {
			i++
		} else {
			j++
		}
	}
	return out
}

func (s set) minus(o set) set { return s.intersect(o.negate()) }

func (s set) contains(r rune) bool {
	i, ok := slices.BinarySearchFunc(s, r, func(x span, r rune) int {
		switch {
		case x.hi < r:
			return -1
		case x.lo > r:
			return 1
		}
		return 0
	})
	return ok && i >= 0
}

// lastFolded is above every rune that has another case.
const lastFolded = 0x1e943

// folded adds the other cases of every member.
func (s set) folded() set {
	out := slices.Clone(s)
	for _, x := range s {
		for r := x.lo; r <= x.hi && r <= lastFolded; r++ {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				out = append(out, span{f, f})
			}
		}
	}
	return out.clean()
}

// String writes the set as a character class of regexp/syntax.
func (s set) String() string {
	if len(s) == 0 {
		return `[^\x00-\x{10FFFF}]`
	}
	var b strings.Builder
	b.WriteByte('[')
	for _, r := range s {
		fmt.Fprintf(&b, `\x{%x}`, r.lo)
		if r.hi > r.lo {
			fmt.Fprintf(&b, `-\x{%x}`, r.hi)
		}
	}
	b.WriteByte(']')
	return b.String()
}

// The classes of \d, \s and \w, as Unicode Technical Standard 18 has them.
var (
	digits = sync.OnceValue(func() set { return fromTables(unicode.Nd) })
	blanks = sync.OnceValue(func() set { return fromTables(unicode.White_Space) })
	words  = sync.OnceValue(func() set {
		return fromTables(unicode.L, unicode.M, unicode.Nd, unicode.Nl, unicode.Pc, unicode.Join_Control,
			unicode.Other_Alphabetic, unicode.Other_Lowercase, unicode.Other_Uppercase)
	})
)

var posix = map[string]set{
	"alnum":  {{'0', '9'}, {'A', 'Z'}, {'a', 'z'}},
	"alpha":  {{'A', 'Z'}, {'a', 'z'}},
	"ascii":  {{0, 127}},
	"blank":  {{'\t', '\t'}, {' ', ' '}},
	"cntrl":  {{0, 31}, {127, 127}},
	"digit":  {{'0', '9'}},
	"graph":  {{33, 126}},
	"lower":  {{'a', 'z'}},
	"print":  {{32, 126}},
	"punct":  {{33, 47}, {58, 64}, {91, 96}, {123, 126}},
	"space":  {{9, 13}, {' ', ' '}},
	"upper":  {{'A', 'Z'}},
	"word":   {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}},
	"xdigit": {{'0', '9'}, {'A', 'F'}, {'a', 'f'}},
}

// property finds a Unicode category, script or property by its name, loosely written.
func property(name string) (set, bool) {
	if before, after, ok := strings.Cut(name, "="); ok {
		switch loose(before) {
		case "gc", "generalcategory", "sc", "script", "scx", "scriptextensions":
			name = after
		default:
			return nil, false
		}
	}
	switch n := loose(name); n {
	case "any":
		return set{{0, unicode.MaxRune}}, true
	case "ascii":
		return posix["ascii"], true
	case "alphabetic", "alpha":
		return fromTables(unicode.L, unicode.Nl, unicode.Other_Alphabetic, unicode.Other_Lowercase, unicode.Other_Uppercase), true
	case "uppercase", "upper":
		return fromTables(unicode.Lu, unicode.Other_Uppercase), true
	case "lowercase", "lower":
		return fromTables(unicode.Ll, unicode.Other_Lowercase), true
	case "space", "wspace":
		return blanks(), true
	default:
		t, ok := tables()[n]
		if !ok {
			return nil, false
		}
		return fromTables(t), true
	}
}

// tables holds all of the unicode package's tables by loose name; categories win over scripts.
var tables = sync.OnceValue(func() map[string]*unicode.RangeTable {
	out := map[string]*unicode.RangeTable{}
	for name, t := range unicode.Properties {
		out[loose(name)] = t
	}
	for name, t := range unicode.Scripts {
		out[loose(name)] = t
	}
	for name, t := range unicode.Categories {
		out[loose(name)] = t
	}
	for alias, name := range unicode.CategoryAliases {
		if t := unicode.Categories[name]; t != nil {
			out[loose(alias)] = t
		}
	}
	return out
})

func loose(name string) string {
	return strings.ToLower(strings.NewReplacer("_", "", "-", "", " ", "").Replace(name))
}
