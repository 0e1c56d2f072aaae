package pattern

import (
	"regexp/syntax"
	"slices"
	"sort"
	"unicode"
	"unicode/utf8"
)

// class is a set of runes that the pattern does not tell apart.
type class uint16

// The classes that stand for no rune. All others begin at firstRune.
const (
	lineEnd class = iota
	badByte       // not UTF-8: nothing matches it
	firstRune
)

// program is a compiled pattern: the instructions of regexp/syntax and the classes of their alphabet.
type program struct {
	inst  []syntax.Inst
	start uint32
	// accepts[i] are the classes that instruction i takes, nil if it takes no rune.
	accepts [][]bool
	// ascii gives the class of each ASCII character; bounds and classes do it for all runes: class[i] is
	// that of the runes from bounds[i] up to the next bound.
	ascii   [utf8.RuneSelf]class
	bounds  []rune
	classes []class
	count   int // number of classes
	// word tells which classes are word characters, where the pattern asks.
	word []bool
	// looks is set if the pattern has assertions, looksWord if some are about words.
	looks, looksWord bool
	// keepCR is set if CR before LF is part of the line.
	keepCR bool
}

func newProgram(p *syntax.Prog, keepCR bool) *program {
	pr := &program{inst: p.Inst, start: uint32(p.Start), keepCR: keepCR}
	sets := make([]set, len(p.Inst))
	shared := map[*rune]set{} // a repetition is written out as many instructions with one class
	for i := range p.Inst {
		in := &p.Inst[i]
		switch in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL:
			if len(in.Rune) > 1 {
				if shared[&in.Rune[0]] == nil {
					shared[&in.Rune[0]] = runesOf(in)
				}
				sets[i] = shared[&in.Rune[0]]
				continue
			}
			sets[i] = runesOf(in)
		case syntax.InstEmptyWidth:
			pr.looks = true
			if syntax.EmptyOp(in.Arg)&(syntax.EmptyWordBoundary|syntax.EmptyNoWordBoundary) != 0 {
				pr.looksWord = true
			}
		}
	}
	pr.partition(sets)
	return pr
}

// runesOf is what a rune instruction matches.
func runesOf(in *syntax.Inst) set {
	switch in.Op {
	case syntax.InstRuneAny:
		return set{{0, unicode.MaxRune}}
	case syntax.InstRuneAnyNotNL:
		return setOf('\n').negate()
	}
	if len(in.Rune) == 1 {
		s := setOf(in.Rune[0])
		if syntax.Flags(in.Arg)&syntax.FoldCase != 0 {
			s = s.folded()
		}
		return s
	}
	var s set
	for i := 0; i+1 < len(in.Rune); i += 2 {
		s = append(s, span{in.Rune[i], in.Rune[i+1]})
	}
	return s.clean()
}

// partition cuts the runes into classes: two runes are in one class if the same instructions take them.
func (p *program) partition(sets []set) {
	distinct, indexOf := dedupe(sets)
	if p.looksWord {
		distinct = append(distinct, words())
	}
	p.bounds = cuts(distinct)
	known := map[string]class{}
	members := make([][]bool, 0, 8) // per class, per distinct set
	for i, lo := range p.bounds {
		member := make([]bool, len(distinct))
		key := make([]byte, len(distinct))
		for k, s := range distinct {
			if s.contains(lo) {
				member[k], key[k] = true, 1
			}
		}
		c, ok := known[string(key)]
		if !ok {
			c = firstRune + class(len(members))
			known[string(key)] = c
			members = append(members, member)
		}
		p.classes = append(p.classes, c)
		hi := rune(utf8.RuneSelf)
		if i+1 < len(p.bounds) {
			hi = min(hi, p.bounds[i+1])
		}
		for r := lo; r < hi; r++ {
			p.ascii[r] = c
		}
	}
	p.count = int(firstRune) + len(members)
	p.accepts = make([][]bool, len(sets))
	shared := make([][]bool, len(distinct))
	for k := range distinct {
		shared[k] = make([]bool, p.count)
		for c, member := range members {
			shared[k][int(firstRune)+c] = member[k]
		}
	}
	for i, k := range indexOf {
		if k >= 0 {
			p.accepts[i] = shared[k]
		}
	}
	p.word = make([]bool, p.count)
	if p.looksWord {
		p.word = shared[len(distinct)-1]
	}
}

// dedupe returns the different sets and, for each instruction, which of them it has, or -1.
func dedupe(sets []set) (distinct []set, indexOf []int) {
	indexOf = make([]int, len(sets))
	for i, s := range sets {
		indexOf[i] = -1
		if s == nil {
			continue
		}
		k := slices.IndexFunc(distinct, func(o set) bool {
			return len(o) == len(s) && (len(s) > 0 && &o[0] == &s[0] || slices.Equal(o, s))
		})
		if k < 0 {
			k = len(distinct)
			distinct = append(distinct, s)
		}
		indexOf[i] = k
	}
	return distinct, indexOf
}

// cuts lists the runes at which membership in some set changes, beginning with 0.
func cuts(sets []set) []rune {
	at := []rune{0}
	for _, s := range sets {
		for _, r := range s {
			at = append(at, r.lo)
			if r.hi < unicode.MaxRune {
				at = append(at, r.hi+1)
			}
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// classOf is the class of a rune.
func (p *program) classOf(r rune) class {
	if r < utf8.RuneSelf {
		return p.ascii[r]
	}
	i := sort.Search(len(p.bounds), func(i int) bool { return p.bounds[i] > r })
	return p.classes[i-1]
}
