package pattern

import (
	"bytes"
	"encoding/binary"
	"regexp/syntax"
	"slices"
	"unicode/utf8"
)

// What a step leads to, other than a state.
const (
	unknown int32 = -1 // not worked out yet, or not to be decided by one byte
	matched int32 = -2 // the line matches
	dead    int32 = -3 // the rest of the line cannot matter
)

// state is a set of instructions that may come next, and what is known about the position before them.
type state struct {
	insts     []uint32
	atStart   bool // of the line
	afterWord bool
}

// automaton is a deterministic automaton that is built while it runs. Its states begin with the one at a line
// start, number 0.
type automaton struct {
	p      *program
	states []state
	byKey  map[string]int32
	// byByte has 256 entries for each state; non-ASCII bytes and CR stay unknown there.
	byByte []int32
	// byClass has an entry for each state and class.
	byClass []int32
	most    int // states to keep before all are forgotten
	resets  int // how often that happened
	wide    []class

	seen  sparse // scratch of closure
	next  sparse
	stack []uint32
	key   []byte
}

// tableSize bounds the memory of the transition tables, bytes.
const tableSize = 4 << 20

func newAutomaton(p *program) *automaton {
	a := &automaton{p: p, most: max(64, tableSize/(4*(256+p.count)))}
	a.seen.init(len(p.inst))
	a.next.init(len(p.inst))
	a.reset()
	return a
}

// reset forgets all states but the first.
func (a *automaton) reset() {
	a.resets++
	a.states, a.byByte, a.byClass = a.states[:0], a.byByte[:0], a.byClass[:0]
	a.byKey = map[string]int32{}
	a.next.clear()
	a.follow(a.p.start, 0, &a.next)
	a.intern(true, false)
}

// follow adds to out what can be reached from instruction pc without taking a rune. Assertions that flags
// satisfy are passed, others stay in the set. It reports whether a match is reached.
func (a *automaton) follow(pc uint32, flags syntax.EmptyOp, out *sparse) (match bool) {
	a.stack = append(a.stack[:0], pc)
	for len(a.stack) > 0 {
		pc := a.stack[len(a.stack)-1]
		a.stack = a.stack[:len(a.stack)-1]
		if !out.add(pc) {
			continue
		}
		switch in := &a.p.inst[pc]; in.Op {
		case syntax.InstAlt, syntax.InstAltMatch:
			a.stack = append(a.stack, in.Out, in.Arg)
		case syntax.InstCapture, syntax.InstNop:
			a.stack = append(a.stack, in.Out)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&^flags == 0 {
				a.stack = append(a.stack, in.Out)
			}
		case syntax.InstMatch:
			match = true
		}
	}
	return match
}

// intern returns the number of the state made of a.next.
func (a *automaton) intern(atStart, afterWord bool) int32 {
	insts := make([]uint32, 0, len(a.next.dense))
	for _, pc := range a.next.dense {
		switch in := &a.p.inst[pc]; in.Op {
		case syntax.InstRune, syntax.InstRune1, syntax.InstRuneAny, syntax.InstRuneAnyNotNL, syntax.InstMatch:
			insts = append(insts, pc)
		case syntax.InstEmptyWidth:
			if syntax.EmptyOp(in.Arg)&(syntax.EmptyBeginLine|syntax.EmptyBeginText) == 0 || atStart {
				insts = append(insts, pc)
			}
		}
	}
	if len(insts) == 0 && !atStart {
		return dead
	}
	slices.Sort(insts)
	a.key = a.key[:0]
	for _, pc := range insts {
		a.key = binary.NativeEndian.AppendUint32(a.key, pc)
	}
	a.key = append(a.key, flag(atStart)|flag(afterWord)<<1)
	if n, ok := a.byKey[string(a.key)]; ok {
		return n
	}
	n := int32(len(a.states))
	a.byKey[string(a.key)] = n
	a.states = append(a.states, state{insts: insts, atStart: atStart, afterWord: afterWord})
	a.byByte = appendUnknown(a.byByte, 256)
	a.byClass = appendUnknown(a.byClass, a.p.count)
	return n
}

func flag(b bool) byte {
	if b {
		return 1
	}
	return 0
}

func appendUnknown(t []int32, n int) []int32 {
	from := len(t)
	t = slices.Grow(t, n)[:from+n]
	for i := from; i < len(t); i++ {
		t[i] = unknown
	}
	return t
}

// step works out where a class leads from a state.
func (a *automaton) step(from int32, c class) int32 {
	at := int(from)*a.p.count + int(c)
	if to := a.byClass[at]; to != unknown {
		return to
	}
	if len(a.states) >= a.most && from != 0 {
		keep := a.states[from]
		a.reset()
		a.next.clear()
		for _, pc := range keep.insts {
			a.next.add(pc)
		}
		from = a.intern(keep.atStart, keep.afterWord)
		at = int(from)*a.p.count + int(c)
	}
	to := a.compute(a.states[from], c)
	a.byClass[at] = to
	return to
}

func (a *automaton) compute(s state, c class) int32 {
	ready := s.insts
	if a.p.looks {
		a.seen.clear()
		flags := a.flags(s, c)
		for _, pc := range s.insts {
			if a.follow(pc, flags, &a.seen) {
				return matched
			}
		}
		ready = a.seen.dense
	} else if a.accepting(ready) {
		return matched
	}
	if c == lineEnd {
		return 0
	}
	a.next.clear()
	for _, pc := range ready {
		if takes := a.p.accepts[pc]; takes != nil && takes[c] {
			if a.follow(a.p.inst[pc].Out, 0, &a.next) {
				return matched
			}
		}
	}
	a.follow(a.p.start, 0, &a.next) // a match may begin anywhere
	return a.intern(false, a.p.looksWord && a.p.word[c])
}

func (a *automaton) accepting(insts []uint32) bool {
	return slices.ContainsFunc(insts, func(pc uint32) bool { return a.p.inst[pc].Op == syntax.InstMatch })
}

// flags are the assertions that hold between the position of s and class c.
func (a *automaton) flags(s state, c class) syntax.EmptyOp {
	var f syntax.EmptyOp
	if s.atStart {
		f |= syntax.EmptyBeginLine | syntax.EmptyBeginText
	}
	if c == lineEnd {
		f |= syntax.EmptyEndLine | syntax.EmptyEndText
	}
	if a.p.looksWord {
		if s.afterWord != a.p.word[c] {
			f |= syntax.EmptyWordBoundary
		} else {
			f |= syntax.EmptyNoWordBoundary
		}
	}
	return f
}

// run goes over text from state at and returns the position behind the last byte used. It stops with matched
// on the byte that decides a match, and else at the end of text, or before a character that is cut off
// there unless final is set.
func (a *automaton) run(at int32, text []byte, final bool) (to int32, used int) {
	for i := 0; i < len(text); {
		if at >= 0 {
			table := a.byByte
			for i < len(text) {
				next := table[int(at)<<8|int(text[i])]
				if next < 0 {
					break
				}
				at = next
				i++
			}
			if i == len(text) {
				break
			}
		}
		next, width := a.slow(at, text[i:], final)
		if width == 0 {
			return at, i
		}
		if next == matched {
			return matched, i
		}
		at = next
		i += width
	}
	return at, len(text)
}

// slow takes one character that the table by bytes does not settle, or the rest of a dead line. Width 0 says
// that the character is cut off.
func (a *automaton) slow(at int32, text []byte, final bool) (next int32, width int) {
	if at == dead {
		n := bytes.IndexByte(text, '\n')
		if n < 0 {
			return dead, len(text)
		}
		return 0, n + 1
	}
	c, width := a.classAt(text, final)
	if width == 0 {
		return at, 0
	}
	next = a.step(at, c)
	if b := text[0]; b < utf8.RuneSelf && b != '\r' {
		a.remember(at, b, next)
	}
	return next, width
}

// remember stores a step in the fast table. If all states were just forgotten the numbers mean others now, and
// the step is stored only if it is true of those.
func (a *automaton) remember(from int32, b byte, to int32) {
	if to >= 0 && int(from) < len(a.states) && a.byClass[int(from)*a.p.count+int(a.classOfByte(b))] == to {
		a.byByte[int(from)<<8|int(b)] = to
	}
}

func (a *automaton) classOfByte(b byte) class {
	if b == '\n' {
		return lineEnd
	}
	return a.p.ascii[b]
}

// classAt is the class of the character at the start of text and its width in bytes, 0 if more is needed.
func (a *automaton) classAt(text []byte, final bool) (class, int) {
	b := text[0]
	switch {
	case b == '\n':
		return lineEnd, 1
	case b == '\r' && !a.p.keepCR:
		if len(text) == 1 && !final {
			return 0, 0
		}
		if len(text) > 1 && text[1] == '\n' {
			return lineEnd, 2
		}
	case b >= utf8.RuneSelf:
		return a.wideClass(text, final)
	}
	return a.p.ascii[b], 1
}

func (a *automaton) wideClass(text []byte, final bool) (class, int) {
	if !final && !utf8.FullRune(text) {
		return 0, 0
	}
	r, n := utf8.DecodeRune(text)
	if r == utf8.RuneError && n == 1 {
		return badByte, 1
	}
	if r > 0xFFFF {
		return a.p.classOf(r), n
	}
	if a.wide == nil {
		a.wide = make([]class, 0x10000)
	}
	c := a.wide[r]
	if c == 0 { // lineEnd is no rune's class
		c = a.p.classOf(r)
		a.wide[r] = c
	}
	return c, n
}

// sparse is a set of instruction numbers that is cleared in constant time.
type sparse struct {
	dense  []uint32
	member []uint32
	round  uint32
}

func (s *sparse) init(n int) { s.member = make([]uint32, n) }

func (s *sparse) clear() {
	s.dense = s.dense[:0]
	s.round++
	if s.round == 0 {
		clear(s.member)
		s.round = 1
	}
}

func (s *sparse) add(pc uint32) bool {
	if s.member[pc] == s.round {
		return false
	}
	s.member[pc] = s.round
	s.dense = append(s.dense, pc)
	return true
}
