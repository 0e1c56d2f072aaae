package bash

import "unicode/utf8"

// replacement stands for one maximal bad sequence.
const replacement = "\uFFFD"

// decoder turns the bytes of one stream into valid UTF-8, as browsers do: each maximal prefix of a character
// that is not completed becomes one U+FFFD. A character may be split over calls.
type decoder struct {
	pending []byte // the start of a character, at most 3 bytes
}

// decode appends the text of p to dst.
func (d *decoder) decode(dst, p []byte) []byte {
	for len(d.pending) > 0 && len(p) > 0 {
		d.pending = append(d.pending, p[0])
		n, incomplete := badPrefix(d.pending)
		switch {
		case incomplete:
			p = p[1:]
		case n == 0: // complete
			dst, d.pending, p = append(dst, d.pending...), d.pending[:0], p[1:]
		default: // p[0] does not belong to it
			dst, d.pending = append(dst, replacement...), d.pending[:0]
		}
	}
	if utf8.Valid(p) {
		return append(dst, p...)
	}
	start := 0 // of what is valid and not yet copied
	for i := 0; i < len(p); {
		if p[i] < utf8.RuneSelf {
			i++
			continue
		}
		if r, size := utf8.DecodeRune(p[i:]); r != utf8.RuneError || size > 1 {
			i += size
			continue
		}
		dst = append(dst, p[start:i]...)
		n, incomplete := badPrefix(p[i:])
		if incomplete {
			d.pending = append(d.pending[:0], p[i:]...)
			return dst
		}
		dst = append(dst, replacement...)
		i += n
		start = i
	}
	return append(dst, p[start:]...)
}

// flush appends what an unfinished character at the end of the stream becomes.
func (d *decoder) flush(dst []byte) []byte {
	if len(d.pending) == 0 {
		return dst
	}
	d.pending = d.pending[:0]
	return append(dst, replacement...)
}

// badPrefix measures the character at the start of p: 0 if it is complete and valid; incomplete if all of p
// begins a character that may yet be completed; else the length of the maximal bad sequence. The ranges are
// those of table 3-7 of the Unicode standard.
func badPrefix(p []byte) (n int, incomplete bool) {
	low, high, need := byte(0x80), byte(0xBF), 0
	switch b := p[0]; {
	case b < 0x80:
		return 0, false
	case b < 0xC2, b > 0xF4:
		return 1, false
	case b < 0xE0:
		need = 1
	case b < 0xF0:
		need = 2
		if b == 0xE0 {
			low = 0xA0
		} else if b == 0xED {
			high = 0x9F
		}
	default:
		need = 3
		if b == 0xF0 {
			low = 0x90
		} else if b == 0xF4 {
			high = 0x8F
		}
	}
	for i := 1; i <= need; i++ {
		if i == len(p) {
			return i, true
		}
		if p[i] < low || p[i] > high {
			return i, false
		}
		low, high = 0x80, 0xBF
	}
	return 0, false
}
