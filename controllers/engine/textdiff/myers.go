package textdiff

// script returns the changes that turn old into new.
func script(old, new []string) []change {
	prefix := 0
	for prefix < len(old) && prefix < len(new) && old[prefix] == new[prefix] {
		prefix++
	}
	a, b := intern(old[prefix:], new[prefix:])
	m := &myers{old: a, new: b}
	var changes []change
	if d, k, ok := m.search(); ok {
		changes = m.trace(d, k)
	} else {
		changes = block(a, b)
	}
	for i := range changes {
		c := &changes[i]
		c.a, c.b, c.c, c.d = c.a+prefix, c.b+prefix, c.c+prefix, c.d+prefix
	}
	return changes
}

// intern gives equal lines equal numbers.
func intern(old, new []string) (a, b []int32) {
	ids := make(map[string]int32, len(old))
	number := func(lines []string) []int32 {
		out := make([]int32, len(lines))
		for i, l := range lines {
			id, ok := ids[l]
			if !ok {
				id = int32(len(ids))
				ids[l] = id
			}
			out[i] = id
		}
		return out
	}
	return number(old), number(new)
}

// block is the coarse answer for texts that differ too much.
func block(a, b []int32) []change {
	suffix := 0
	for suffix < len(a) && suffix < len(b) && a[len(a)-1-suffix] == b[len(b)-1-suffix] {
		suffix++
	}
	return []change{{0, len(a) - suffix, 0, len(b) - suffix}}
}

// myers is the greedy search of E. Myers, "An O(ND) Difference Algorithm and Its Variations". A diagonal k holds the
// points whose old position less their new position is k; after d steps reach[d] holds, for each diagonal, the farthest
// old position.
type myers struct {
	old, new []int32
	reach    [][]int32 // reach[d][(k+d)/2] for k = -d, -d+2 … d; unreachable is -1
}

// search finds the smallest number of steps and the diagonal on which the end is reached. It gives up beyond
// maxDistance.
func (m *myers) search() (steps, diagonal int, ok bool) {
	for d := 0; d <= min(maxDistance, len(m.old)+len(m.new)); d++ {
		row := make([]int32, d+1)
		m.reach = append(m.reach, row)
		for k := -d; k <= d; k += 2 {
			x := 0
			if d > 0 {
				x, _ = m.step(d, k)
			}
			if x >= 0 {
				x = m.slide(x, k)
			}
			row[(k+d)/2] = int32(x)
			if x == len(m.old) && x-k == len(m.new) {
				return d, k, true
			}
		}
	}
	return 0, 0, false
}

// step returns where step d enters diagonal k and whether by a deletion; -1 if it cannot. Of the two points it can
// come from, the one farther in the old text is taken, and a deletion if they are level.
func (m *myers) step(d, k int) (x int, deletion bool) {
	del := m.at(d-1, k-1)
	ins := m.at(d-1, k+1)
	canDelete := del >= 0 && del < len(m.old)
	canInsert := ins >= 0 && ins-k-1 < len(m.new)
	switch {
	case canInsert && (!canDelete || del < ins):
		return ins, false
	case canDelete:
		return del + 1, true
	}
	return -1, false
}

func (m *myers) at(d, k int) int {
	if k < -d || k > d {
		return -1
	}
	return int(m.reach[d][(k+d)/2])
}

// slide follows equal lines.
func (m *myers) slide(x, k int) int {
	for x < len(m.old) && x-k < len(m.new) && m.old[x] == m.new[x-k] {
		x++
	}
	return x
}

// trace walks back from the end and collects the changes.
func (m *myers) trace(d, k int) []change {
	var reversed []change
	for ; d > 0; d-- {
		x, deletion := m.step(d, k)
		c := change{x, x, x - k - 1, x - k}
		k++
		if deletion {
			k -= 2
			c = change{x - 1, x, x - k - 1, x - k - 1}
		}
		if n := len(reversed); n > 0 && reversed[n-1].a == c.b && reversed[n-1].c == c.d {
			reversed[n-1].a, reversed[n-1].c = c.a, c.c
		} else {
			reversed = append(reversed, c)
		}
	}
	for i, j := 0, len(reversed)-1; i < j; i, j = i+1, j-1 {
		reversed[i], reversed[j] = reversed[j], reversed[i]
	}
	return reversed
}
