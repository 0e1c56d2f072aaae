package ignore

import (
	"path/filepath"
	"strings"
)

// accountLists reads the account's ignore files: the tool's own and git's. Their paths are relative to base.
func accountLists(base string, c Config) []*List {
	var out []*List
	for _, path := range []string{gitExcludes(c), c.Account} {
		if l := parseFile(base, path, 0); l != nil {
			out = append(out, l)
		}
	}
	return out
}

// gitExcludes is core.excludesFile of the account's git configuration, else git/ignore.
func gitExcludes(c Config) string {
	path := filepath.Join(c.ConfigHome, "git", "ignore")
	for _, file := range []string{filepath.Join(c.ConfigHome, "git", "config"), filepath.Join(c.Home, ".gitconfig")} {
		text, err := readSmall(file, 0)
		if err != nil {
			continue
		}
		if v := excludesSetting(string(text)); v != "" {
			path = v
		}
	}
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		path = filepath.Join(c.Home, rest)
	}
	return absolute(c.Home, path)
}

// excludesSetting finds the last core.excludesFile of a git configuration. Included files are not followed.
func excludesSetting(text string) string {
	value, inCore := "", false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "[") {
			section, rest, _ := strings.Cut(line[1:], "]")
			inCore = strings.EqualFold(strings.TrimSpace(section), "core")
			line = strings.TrimSpace(rest)
		}
		key, v, ok := strings.Cut(line, "=")
		if inCore && ok && strings.EqualFold(strings.TrimSpace(key), "excludesfile") {
			value = unquote(strings.TrimSpace(v))
		}
	}
	return value
}

// unquote removes quotes, escapes and a comment at the end, as git does for values.
func unquote(v string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(v); i++ {
		switch c := v[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(v):
			i++
			b.WriteByte(v[i])
		case (c == '#' || c == ';') && !quoted:
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}
