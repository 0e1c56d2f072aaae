package edit

import (
	"bytes"
	"fmt"
	"sort"
	"strconv"
	"strings"
	"unicode/utf8"
)

// The search for the line that resembles a text is bounded by these numbers, so that it stays well below a second for
// the largest file.
const (
	maxProbes     = 3       // lines of oldText that are looked for by their letters
	maxCandidates = 8       // places kept for each of them
	maxCommon     = 50      // a line that the file has more often says nothing about a place
	maxCompared   = 200     // lines compared at each place
	maxLine       = 2048    // bytes of a line of oldText that are looked for
	minPart       = 512     // bytes of the parts in which a long line of the file is looked at
	maxAligned    = 1 << 24 // cells of the table that compares a line with oldText character by character
	maxShown      = 160     // bytes of a line that are shown
	minLikeness   = 0.45    // below it nothing is named
)

// resemblance names the place that is most like oldText and the characters that differ there.
func (d *document) resemblance(old string) string {
	if len(d.lf.text) == 0 {
		return "The file is empty."
	}
	if strings.ContainsRune(old, utf8.RuneError) && !utf8.Valid(d.raw) {
		return "The file is not UTF-8; read shows each byte that is none as U+FFFD, which cannot be matched. " +
			"Quote a part without such characters."
	}
	if strings.TrimSpace(old) == "" {
		return "oldText has blanks only. Quote the text beside them as well."
	}
	s := &search{old: strings.Split(old, "\n"), file: bytes.Split(d.lf.text, []byte("\n")), profiles: map[int]*profile{}}
	start, likeness := s.best()
	if likeness < minLikeness {
		return "No line of the file resembles it. Read the file again and quote what is there."
	}
	n, text := s.difference(start)
	pos := 0
	for _, l := range s.file[:min(n, len(s.file))] {
		pos += len(l) + 1
	}
	return fmt.Sprintf("The closest text is on line %d: %s Quote what is there, or read the file again.",
		d.line(min(pos, len(d.lf.text))), text)
}

// search looks for the place in a file that is most like a text.
type search struct {
	old      []string
	file     [][]byte
	profiles map[int]*profile // of lines of the text, made when first needed
}

func (s *search) profile(j int) *profile {
	p := s.profiles[j]
	if p == nil {
		p = newProfile(s.old[j])
		s.profiles[j] = p
	}
	return p
}

// best returns the line, from 0, at which the first line of the text would be, and the likeness from 0 to 1.
func (s *search) best() (start int, likeness float64) {
	starts := map[int]bool{}
	s.voted(starts)
	for _, j := range s.probes() {
		for _, line := range s.alike(s.profile(j)) {
			starts[line-j] = true
		}
	}
	ordered := make([]int, 0, len(starts))
	for at := range starts {
		ordered = append(ordered, at)
	}
	sort.Ints(ordered)
	for _, at := range ordered {
		if l := s.likeness(at); l > likeness {
			start, likeness = at, l
		}
	}
	return start, likeness
}

// voted adds the places that most lines agree on which the file has in just this form, blanks at the ends aside.
func (s *search) voted(starts map[int]bool) {
	wanted := map[string][]int{}
	for j, l := range s.old[:min(len(s.old), maxCompared)] {
		if l = strings.TrimSpace(l); l != "" {
			wanted[l] = append(wanted[l], j)
		}
	}
	found := map[string][]int{}
	for i, l := range s.file {
		l = bytes.TrimSpace(l)
		if _, ok := wanted[string(l)]; ok && len(found[string(l)]) <= maxCommon {
			found[string(l)] = append(found[string(l)], i)
		}
	}
	votes := map[int]int{}
	for l, at := range found {
		if len(at) > maxCommon {
			continue
		}
		for _, i := range at {
			for _, j := range wanted[l] {
				votes[i-j]++
			}
		}
	}
	places := make([]int, 0, len(votes))
	for at := range votes {
		places = append(places, at)
	}
	sort.Slice(places, func(a, b int) bool {
		if votes[places[a]] != votes[places[b]] {
			return votes[places[a]] > votes[places[b]]
		}
		return places[a] < places[b]
	})
	for _, at := range places[:min(len(places), maxCandidates)] {
		starts[at] = true
	}
}

// probes returns the indexes of the longest lines of the text.
func (s *search) probes() []int {
	var order []int
	for j, l := range s.old[:min(len(s.old), maxCompared)] {
		if strings.TrimSpace(l) != "" {
			order = append(order, j)
		}
	}
	sort.SliceStable(order, func(a, b int) bool { return len(s.old[order[a]]) > len(s.old[order[b]]) })
	return order[:min(len(order), maxProbes)]
}

// alike returns the lines of the file that share the most groups of letters with the profile.
func (s *search) alike(p *profile) []int {
	type scored struct {
		line  int
		score float64
	}
	var top []scored
	for i, l := range s.file {
		score := p.likeness(l)
		if score == 0 || len(top) == maxCandidates && score <= top[len(top)-1].score {
			continue
		}
		at := sort.Search(len(top), func(n int) bool { return top[n].score < score })
		top = append(top, scored{})
		copy(top[at+1:], top[at:])
		top[at] = scored{i, score}
		top = top[:min(len(top), maxCandidates)]
	}
	lines := make([]int, len(top))
	for n, t := range top {
		lines[n] = t.line
	}
	return lines
}

// likeness compares the text with the file from line start on.
func (s *search) likeness(start int) float64 {
	sum, weight := 0.0, 0.0
	for j, l := range s.old[:min(len(s.old), maxCompared)] {
		if strings.TrimSpace(l) == "" {
			continue
		}
		w := float64(min(len(l), maxLine))
		weight += w
		if i := start + j; i >= 0 && i < len(s.file) {
			if string(s.file[i]) == l {
				sum += w
			} else {
				sum += w * 0.99 * s.profile(j).likeness(s.file[i])
			}
		}
	}
	if weight == 0 {
		return 0
	}
	return sum / weight
}

// profile is the set of letter groups of a line: three letters in a row, case and blanks aside.
type profile struct {
	size  int     // letters in a group
	count int     // different groups
	bytes int     // length of the line
	seen  []int32 // by hash: 0 for no group of the line, else the last round in which it was met
	round int32
}

const profileBits = 13

func newProfile(line string) *profile {
	letters := 0
	for i := 0; i < min(len(line), maxLine); i++ {
		if line[i] != ' ' && line[i] != '\t' {
			letters++
		}
	}
	p := &profile{size: min(3, letters), bytes: min(len(line), maxLine), seen: make([]int32, 1<<profileBits), round: 1}
	p.groups([]byte(line[:min(len(line), maxLine)]), func(h uint32) {
		if p.seen[h] == 0 {
			p.seen[h] = p.round
			p.count++
		}
	})
	return p
}

// likeness is the share of the groups that the other line has too, a little less if its length differs. Of a long line
// the best part counts.
func (p *profile) likeness(line []byte) float64 {
	if p.count == 0 {
		return 0
	}
	length := float64(min(p.bytes, len(line))) / float64(max(p.bytes, len(line)))
	hits, part := 0, max(minPart, 2*p.bytes)
	for {
		hits = max(hits, p.shared(line[:min(len(line), part)]))
		if len(line) <= part {
			break
		}
		line = line[part/2:]
	}
	if hits == 0 {
		return 0
	}
	return float64(hits)/float64(p.count)*0.95 + length*0.05
}

// shared counts the groups that the other text has too.
func (p *profile) shared(text []byte) int {
	p.round++
	hits := 0
	p.groups(text, func(h uint32) {
		if last := p.seen[h]; last != 0 && last != p.round {
			p.seen[h] = p.round
			hits++
		}
	})
	return hits
}

// groups calls f with the hash of each group of letters.
func (p *profile) groups(line []byte, f func(uint32)) {
	var window uint32
	n := 0
	mask := uint32(1)<<(8*p.size) - 1
	for _, c := range line {
		if c == ' ' || c == '\t' {
			continue
		}
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		window = (window<<8 | uint32(c)) & mask
		if n++; n >= p.size && p.size > 0 {
			f((window * 2654435761) >> (32 - profileBits)) // spreads the bits well
		}
	}
}

// difference finds the first line that differs at a place and describes it.
func (s *search) difference(start int) (line int, text string) {
	last := len(s.old) - 1
	for j, want := range s.old {
		i := start + j
		if i < 0 || i >= len(s.file) {
			if i >= len(s.file) {
				return len(s.file) - 1, fmt.Sprintf("%s. The file ends there, oldText goes on with %s.",
					shown(string(s.file[len(s.file)-1])), shown(want))
			}
			continue
		}
		have := string(s.file[i])
		switch {
		case have == want,
			last == 0 && strings.Contains(have, want),
			j == 0 && last > 0 && strings.HasSuffix(have, want),
			j == last && last > 0 && strings.HasPrefix(have, want):
			continue
		}
		part := have
		if j == 0 || j == last {
			part = aligned(have, want)
		}
		text := contrast(part, want)
		if len(have) > maxShown {
			have = part
		}
		return i, shown(have) + ". " + text
	}
	return max(0, start), shown(string(s.file[max(0, start)])) + "."
}

// contrast names the characters that differ.
func contrast(have, want string) string {
	a, b := []rune(have), []rune(want)
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	m := 0
	for m < min(len(a), len(b))-n && a[len(a)-1-m] == b[len(b)-1-m] {
		m++
	}
	h, w := string(a[n:len(a)-m]), string(b[n:len(b)-m])
	switch {
	case h == "":
		return "It lacks " + shown(w) + ", which oldText has."
	case w == "":
		return "It has " + shown(h) + ", which oldText lacks."
	}
	return "It has " + shown(h) + " where oldText has " + shown(w) + "."
}

// aligned returns the part of a line that is most like the wanted text, by edit distance.
func aligned(have, want string) string {
	a, b := []rune(have), []rune(want)
	if len(a)*len(b) > maxAligned {
		return have
	}
	type cell struct{ cost, from int }
	row := make([]cell, len(a)+1) // for each end in a: the cost and where the part begins
	for i := range row {
		row[i] = cell{0, i}
	}
	for j := range b {
		diagonal := row[0]
		row[0] = cell{j + 1, 0}
		for i := range a {
			best := diagonal
			if a[i] != b[j] {
				best.cost++
			}
			if c := row[i+1]; c.cost+1 < best.cost {
				best = cell{c.cost + 1, c.from}
			}
			if c := row[i]; c.cost+1 < best.cost {
				best = cell{c.cost + 1, c.from}
			}
			diagonal, row[i+1] = row[i+1], best
		}
	}
	end := 0
	for i, c := range row {
		if c.cost < row[end].cost {
			end = i
		}
	}
	return string(a[row[end].from:end])
}

// shown quotes a text, cut in the middle if it is long.
func shown(s string) string {
	if len(s) <= maxShown {
		return strconv.Quote(s)
	}
	return strconv.Quote(s[:maxShown/2]) + " … " + strconv.Quote(s[len(s)-maxShown/2:])
}
