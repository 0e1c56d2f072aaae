package glob

// maxAlternatives bounds what one pattern may expand to.
const maxAlternatives = 1024

// HasMeta says whether the pattern has any character with a special meaning.
func HasMeta(pattern string) bool {
	for i := 0; i < len(pattern); i++ {
		switch pattern[i] {
		case '*', '?', '[', '{', '}', '\\':
			return true
		}
	}
	return false
}

// ExpandBraces writes out {a,b} groups, nested ones too; an empty alternative is allowed. Escapes and classes
// are kept as they are.
func ExpandBraces(pattern string) ([]string, error) {
	out, rest, err := expand(pattern, 0)
	if err != nil {
		return nil, err
	}
	if rest != "" {
		return nil, ErrStrayBrace
	}
	return out, nil
}

// expand reads until the end, or inside a group until the comma or brace that ends the alternative.
func expand(s string, depth int) (out []string, rest string, err error) {
	out = []string{""}
	for i := 0; i < len(s); {
		switch s[i] {
		case '\\':
			if i+1 == len(s) {
				return nil, "", ErrDangling
			}
			out = appendAll(out, s[i:i+2])
			i += 2
		case '[':
			_, n, cerr := parseClass(s[i:], Dialect{})
			if cerr != nil {
				return nil, "", cerr
			}
			out = appendAll(out, s[i:i+n])
			i += n
		case '{':
			group, after, gerr := expandGroup(s[i+1:], depth+1)
			if gerr != nil {
				return nil, "", gerr
			}
			if out, err = product(out, group); err != nil {
				return nil, "", err
			}
			s, i = after, 0
		case '}':
			if depth == 0 {
				return nil, "", ErrStrayBrace
			}
			return out, s[i:], nil
		case ',':
			if depth > 0 {
				return out, s[i:], nil
			}
			fallthrough
		default:
			from := i
			for i++; i < len(s) && !special(s[i]); i++ {
			}
			out = appendAll(out, s[from:i])
		}
	}
	if depth > 0 {
		return nil, "", ErrUnclosedBrace
	}
	return out, "", nil
}

func special(c byte) bool {
	return c == '\\' || c == '[' || c == '{' || c == '}' || c == ','
}

// expandGroup reads the alternatives after an opening brace and what follows the closing one.
func expandGroup(s string, depth int) (group []string, after string, err error) {
	if depth > 32 {
		return nil, "", ErrTooMany
	}
	for {
		alt, rest, err := expand(s, depth)
		if err != nil {
			return nil, "", err
		}
		if group = append(group, alt...); len(group) > maxAlternatives {
			return nil, "", ErrTooMany
		}
		if rest[0] == '}' {
			return group, rest[1:], nil
		}
		s = rest[1:]
	}
}

func appendAll(list []string, text string) []string {
	for i := range list {
		list[i] += text
	}
	return list
}

func product(a, b []string) ([]string, error) {
	if len(a)*len(b) > maxAlternatives {
		return nil, ErrTooMany
	}
	out := make([]string, 0, len(a)*len(b))
	for _, x := range a {
		for _, y := range b {
			out = append(out, x+y)
		}
	}
	return out, nil
}
