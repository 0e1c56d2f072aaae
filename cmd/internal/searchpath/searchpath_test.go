package searchpath

import (
	"slices"
	"strings"
	"testing"
)

func TestMerge(t *testing.T) {
	system := strings.Join(systemDirs(), ":")
	for _, c := range []struct {
		name, login, own, want string
		dropped                []string
	}{
		{name: "nothing is known", want: system},
		{name: "a bare service", login: "/home/u/bin:/usr/bin:/bin", own: "/usr/bin:/bin", want: "/home/u/bin:/usr/bin:/bin"},
		{name: "the login shell gave nothing", own: "/opt/x:/usr/bin", want: "/opt/x:/usr/bin"},
		{name: "the login shell's order wins", login: "/b:/a", own: "/a:/b", want: "/b:/a"},
		{name: "an activated environment stays in front", login: "/home/u/bin:/usr/bin", own: "/venv/bin:/home/u/bin:/usr/bin", want: "/venv/bin:/home/u/bin:/usr/bin"},
		{name: "several of one's own keep their order", login: "/usr/bin", own: "/a:/b:/usr/bin:/c:/d", want: "/a:/b:/usr/bin:/c:/d"},
		{name: "what is new comes before what was there at installation", login: "/nvm/22:/usr/bin", own: "/nvm/20:/usr/bin", want: "/nvm/22:/nvm/20:/usr/bin"},
		{name: "twice is once", login: "/a:/a/:/b:/a", own: "/b:/b", want: "/a:/b"},
		{name: "relative parts", login: "bin:/a:.:~/bin:", own: "./x:/b::", want: "/a:/b", dropped: []string{"bin", ".", "~/bin", "./x"}},
		{name: "blanks belong to the name", login: "/Program Files/x: /y", want: "/Program Files/x", dropped: []string{" /y"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := Merge(c.login, c.own)
			want := strings.Split(c.want, ":")
			for _, dir := range systemDirs() {
				if !slices.Contains(want, dir) {
					want = append(want, dir)
				}
			}
			if got := strings.Split(r.Path(), ":"); !slices.Equal(got, want) {
				t.Errorf("got  %v\nwant %v", got, want)
			}
			if !slices.Equal(r.Dropped, c.dropped) {
				t.Errorf("dropped %q, want %q", r.Dropped, c.dropped)
			}
		})
	}
}

func TestSources(t *testing.T) {
	for _, p := range Merge("/l:/usr/bin:/b", "/o:/b:/usr/bin").Parts {
		want, ok := map[string][]Source{"/l": {Login}, "/o": {Own}, "/b": {Login, Own}, "/usr/bin": {Login, Own, System}}[p.Dir]
		if !ok {
			want = []Source{System}
		}
		if !slices.Equal(p.Sources, want) {
			t.Errorf("%s comes from %v, want %v", p.Dir, p.Sources, want)
		}
	}
}
