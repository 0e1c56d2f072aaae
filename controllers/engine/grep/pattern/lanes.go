package pattern

import "bytes"

// Looking up one byte after the other is bound by the latency of memory, not by its bandwidth. So a text is cut
// at line ends into four lanes that are run in step: four look-ups are then under way at a time.

const (
	lanes = 4
	// minLanes is the length of text below which the cutting costs more than it gains, bytes.
	minLanes = 1 << 10
	// maxLanes bounds what is looked at beyond a match that an early lane finds, bytes.
	maxLanes = 32 << 10
)

// lane is one of the parts of a text.
type lane struct {
	rest  []byte
	base  int // of rest in the text
	at    int32
	hit   bool // the byte at base decides a match
	empty bool // from the beginning: there were too few lines
}

// scan is run from a line start over complete lines.
func (a *automaton) scan(text []byte) (to int32, used int) {
	base := 0
	for len(text)-base >= minLanes {
		window := text[base:]
		if len(window) > maxLanes {
			n := bytes.LastIndexByte(window[:maxLanes], '\n')
			if n < 0 {
				break
			}
			window = window[:n+1]
		}
		to, used, ok := a.scanLanes(window)
		if !ok {
			break
		}
		if base += used; to == matched || base == len(text) {
			return to, base
		}
	}
	to, used = a.run(0, text[base:], true)
	return to, base + used
}

// cut makes lanes of about equal length that begin at line starts.
func cut(text []byte) (l [lanes]lane) {
	from := 0
	for k := range l {
		to := len(text)
		if k < lanes-1 {
			to = max(from, len(text)*(k+1)/lanes)
			if n := bytes.IndexByte(text[to:], '\n'); n >= 0 {
				to += n + 1
			} else {
				to = len(text)
			}
		}
		l[k] = lane{rest: text[from:to], base: from, empty: from == to}
		from = to
	}
	return l
}

// scanLanes runs the lanes in step until one ends or has a match, and then each to its end. It gives up with
// ok false if the states were forgotten on the way, since the other lanes' states mean nothing then.
func (a *automaton) scanLanes(text []byte) (to int32, used int, ok bool) {
	l := cut(text)
	resets := a.resets
	for running := true; running; {
		a.lockstep(&l)
		for k := range l {
			if len(l[k].rest) == 0 {
				running = false
				continue
			}
			if l[k].at >= 0 && a.byByte[int(l[k].at)<<8|int(l[k].rest[0])] >= 0 {
				continue
			}
			next, width := a.slow(l[k].at, l[k].rest, true)
			if a.resets != resets {
				return 0, 0, false
			}
			if next == matched {
				l[k].hit, running = true, false
				continue
			}
			l[k].at, l[k].rest, l[k].base = next, l[k].rest[width:], l[k].base+width
		}
	}
	for k := range l {
		if l[k].hit {
			return matched, l[k].base, true
		}
		if l[k].empty {
			continue
		}
		to, used = a.run(l[k].at, l[k].rest, true)
		if a.resets != resets {
			return 0, 0, false
		}
		if to == matched {
			return matched, l[k].base + used, true
		}
	}
	return to, len(text), true
}

// lockstep moves all lanes on as long as the table by bytes settles every one of them.
func (a *automaton) lockstep(l *[lanes]lane) {
	n := len(l[0].rest)
	for k := range l {
		n = min(n, len(l[k].rest))
		if l[k].at < 0 {
			return
		}
	}
	t := a.byByte
	t0, t1, t2, t3 := l[0].rest[:n], l[1].rest[:n], l[2].rest[:n], l[3].rest[:n]
	s0, s1, s2, s3 := l[0].at, l[1].at, l[2].at, l[3].at
	i := 0
	for ; i < n; i++ {
		n0, n1 := t[int(s0)<<8|int(t0[i])], t[int(s1)<<8|int(t1[i])]
		n2, n3 := t[int(s2)<<8|int(t2[i])], t[int(s3)<<8|int(t3[i])]
		if n0|n1|n2|n3 < 0 {
			break
		}
		s0, s1, s2, s3 = n0, n1, n2, n3
	}
	for k, at := range [lanes]int32{s0, s1, s2, s3} {
		l[k].at, l[k].rest, l[k].base = at, l[k].rest[i:], l[k].base+i
	}
}
