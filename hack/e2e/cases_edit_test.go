package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

func mixedLineEndings(k *room) {
	k.becomes("a\r\nb\r\nc\nd\r\n", "A\r\nb\r\nc\nd\r\n", "a", "A")
}

func mixedLineEndingsBothWays(k *room) {
	mixedLineEndings(k)
	k.becomes("a\nb\nc\r\nd\n", "A\nb\nc\r\nd\n", "a", "A")
	k.becomes("a\r\nb\rc\nd", "a\r\nB\rc\nd", "b", "B")
	legacyByteFarAway(k)
}

func pureCRLF(k *room) {
	k.becomes("one\r\ntwo\r\nthree\r\n", "one\r\nTWO\r\nthree\r\n", "two", "TWO")
	mixedLineEndings(k)
}

func byteOrderMarkStays(k *room) {
	k.becomes("\ufeffone\ntwo\n", "\ufeffone\nTWO\n", "two", "TWO")
	k.becomes("\ufeffone\ntwo\n", "\ufeffONE\ntwo\n", "one", "ONE")
}

func legacyByteFarAway(k *room) {
	before := "legacy \x99 byte\r\n" + numbered(2, 1200)
	k.becomes(before, strings.Replace(before, "line 1000\n", "LINE 1000\n", 1), "line 1000\n", "LINE 1000\n")
}

// numbered is the lines from one number to another.
func numbered(from, to int) string {
	var b strings.Builder
	for i := from; i <= to; i++ {
		fmt.Fprintf(&b, "line %d\n", i)
	}
	return b.String()
}

func latinFileInGit(k *room) {
	k.put("f", "caf\xe9\nplain one\nna\xefve\nplain two\n\xfcber\n")
	git := func(args ...string) string {
		cmd := exec.Command("git", append([]string{"-C", k.dir, "-c", "user.name=t", "-c", "user.email=t@example.invalid"}, args...)...)
		out, err := cmd.CombinedOutput()
		if err != nil {
			k.Fatalf("git %v: %v\n%s", args, err, out)
		}
		return string(out)
	}
	git("init", "--quiet")
	git("add", "f")
	git("commit", "--quiet", "--message=before")
	if r := k.edit("f", "plain one", "plain 1", "plain two", "plain 2"); r.IsError {
		k.Errorf("edit: %s", r.Text())
	}
	if got := git("diff", "--numstat"); got != "2\t2\tf\n" {
		k.Errorf("numstat %q", got)
	}
	if got := k.content("f"); got != "caf\xe9\nplain 1\nna\xefve\nplain 2\n\xfcber\n" {
		k.Errorf("the file is %q", got)
	}
}

func rewriteSaysWhatIsLost(k *room) {
	k.put("f", "\ufeffa\r\nb\r\n")
	r := k.write("f", "c\nd\n")
	if k.content("f") != "c\nd\n" || !strings.Contains(r.Text(), "byte order mark") || !strings.Contains(r.Text(), "CRLF") {
		k.Errorf("the file is %q, the answer %q", k.content("f"), r.Text())
	}
}

func replacementIsNoPattern(k *room) {
	const text = "$& $$ $' $1 \\1 ${x} $` %s \\n"
	k.becomes("a (x+) b\n", "a "+text+" b\n", "(x+)", text)
}

func lookAlikeIsRefused(k *room) {
	k.put("f", "alpha(1)\nbeta(2)\nbeta(3)\n")
	k.refuses("f", "TextNotFound", `line 2: "beta\(2\)"\. It has "2" where oldText has "9"`, "beta(9)", "gamma")
}

func wrongCharacterInALargeFile(k *room) {
	var b strings.Builder
	line := func(i int) string { return fmt.Sprintf("\tcase %d: return handle(ctx, request%d)", i, i*7) }
	for i := range 20_000 {
		b.WriteString(line(i+1) + "\n")
	}
	k.put("f", b.String())
	began := time.Now()
	k.refuses("f", "TextNotFound", `line 19950: .*It has "n" where oldText has "m"`, strings.Replace(line(19950), "handle", "hamdle", 1), "x")
	k.within(time.Second, began)
}

func batchIsAllOrNothing(k *room) {
	before := numbered(1, 5000)
	k.becomes(before, strings.Replace(before, "line 4900\n", "LINE 4900\n", 1), "line 4900\n", "LINE 4900\n")
	k.refuses("f", "TextNotFound", `edits\[1\]`, "line 1\n", "x\n", "line 9999\n", "y\n", "line 3\n", "z\n")
}

func fourMistakes(k *room) {
	k.put("f", "one two\nthree\none four\nfive\n")
	k.refuses("f", "NoChange", `line 2`, "three", "three")
	k.refuses("f", "TextAmbiguous", `(?s)2 occurrences .*lines 1, 3\.`, "one", "1")
	k.refuses("f", "EditsOverlap", `edits\[0\] covers lines 1-2, edits\[1\] covers lines 2-3`, "two\nthree", "2\n3", "three\none", "3\n1")
	k.refuses("f", "TextNotFound", `Could not find`, "six", "6")
	if r := k.edit("f", "", "x"); r.Code() != "INVALID_ARGUMENTS" || !strings.Contains(r.Text(), "edits[0].oldText") {
		k.Errorf("empty oldText: %s", r.Raw)
	}
}

func executableBitStays(k *room) {
	k.put("f", "#!/bin/sh\necho hi\n")
	if err := os.Chmod(k.path("f"), 0o755); err != nil {
		k.Fatal(err)
	}
	for _, change := range []func(){
		func() { k.edit("f", "hi", "ho") },
		func() { k.write("f", "#!/bin/sh\n") },
	} {
		change()
		if st, err := os.Stat(k.path("f")); err != nil || st.Mode() != 0o755 {
			k.Errorf("mode %v, %v", st.Mode(), err)
		}
	}
	if k.content("f") != "#!/bin/sh\n" {
		k.Errorf("the file is %q", k.content("f"))
	}
}

// modeOfNewFiles relies on the daemon's umask of 002.
func modeOfNewFiles(k *room) {
	gid := os.Getegid()
	if os.Geteuid() == 0 {
		gid = 12345
	}
	if err := os.Chown(k.dir, -1, gid); err != nil {
		k.Fatal(err)
	}
	if err := syscall.Chmod(k.dir, 0o2775); err != nil {
		k.Fatal(err)
	}
	k.ok("write", daemon.Args{"path": "sub/f", "content": "x", "expected_revision": "missing"})
	for name, want := range map[string]uint32{"sub/f": 0o664, "sub": 0o2775} {
		var st syscall.Stat_t
		if err := syscall.Stat(k.path(name), &st); err != nil {
			k.Fatal(err)
		}
		if uint32(st.Mode)&0o7777 != want || int(st.Gid) != gid {
			k.Errorf("%s has mode %o and group %d, want %o and %d", name, st.Mode&0o7777, st.Gid, want, gid)
		}
	}
}

// fullDisk gives a daemon a file system of 1 MB that nobody else sees.
func fullDisk(k *room) {
	namespace := []string{"--mount"}
	if os.Geteuid() != 0 {
		namespace = append(namespace, "--user", "--map-root-user")
	}
	if out, err := exec.Command("unshare", append(namespace, "true")...).CombinedOutput(); err != nil {
		k.Skipf("needs a mount namespace: %v %s", err, out)
	}
	small, script := k.path("small"), k.path("daemon")
	k.put("small/none", "")
	k.put("daemon", fmt.Sprintf("#!/bin/sh\nexec unshare %s sh -c 'mount -t tmpfs -o size=1m tmpfs \"$0\" && exec \"$@\"' %q %q \"$@\"\n",
		strings.Join(namespace, " "), small, k.d.Binary()))
	if err := os.Chmod(script, 0o755); err != nil {
		k.Fatal(err)
	}
	d := daemon.Start(k, daemon.Options{Binary: script})
	in := &room{T: k.T, d: d, client: d.Client(), dir: small}
	in.workspace = in.client.Open(k, small)
	old := strings.Repeat("o", 600<<10)
	now := in.ok("write", daemon.Args{"path": "f", "content": old, "expected_revision": "missing"}).String("revision")
	r := in.call("write", daemon.Args{"path": "f", "content": strings.Repeat("n", 900<<10), "expected_revision": now})
	if !r.IsError || r.String("reason") != "NoSpace" {
		k.Errorf("%s", r.Raw)
	}
	if got := in.ok("read", daemon.Args{"path": "f"}).String("revision"); got != now {
		k.Errorf("the old content is gone: %s, was %s", got, now)
	}
	in.prints("f\n", "ls -A")
}

func linksStay(k *room) {
	k.put("f", "0\n")
	k.put("sub/other", "")
	links := map[string]string{"sub/relative": "../f", "absolute": k.path("f"), "chain1": "chain2", "chain2": "chain3", "chain3": "sub/relative"}
	for name, to := range links {
		if err := os.Symlink(to, k.path(name)); err != nil {
			k.Fatal(err)
		}
	}
	n := 0
	for name := range links {
		if r := k.edit(name, fmt.Sprintf("%d\n", n), fmt.Sprintf("%d\n", n+1)); r.IsError || r.String("path") != k.path("f") {
			k.Errorf("edit through %s: %s", name, r.Raw)
		}
		k.write(name, fmt.Sprintf("%d\n", n+2))
		n += 2
		if k.content("f") != fmt.Sprintf("%d\n", n) {
			k.Errorf("after %s the target holds %q", name, k.content("f"))
		}
	}
	for name, to := range links {
		if got, err := os.Readlink(k.path(name)); err != nil || got != to {
			k.Errorf("%s is no longer a link to %s: %q, %v", name, to, got, err)
		}
	}
}

func twoSpellingsOfOneFile(k *room) {
	k.put("real/f", "one\ntwo\n")
	link := filepath.Join(realDir(k), "link")
	if err := os.Symlink(k.path("real"), link); err != nil {
		k.Fatal(err)
	}
	seen := revision(k, k.path("real/f"))
	results := make([]daemon.Result, 2)
	var wg sync.WaitGroup
	for i, workspace := range []string{k.client.Open(k, k.path("real")), k.client.Open(k, link)} {
		wg.Go(func() {
			r, err := k.client.Call(bounded(k, time.Minute), "edit", daemon.Args{"workspace_id": workspace, "request_key": daemon.Key(), "path": "f",
				"expected_revision": seen, "edits": []daemon.Args{{"oldText": []string{"one", "two"}[i], "newText": "changed"}}})
			if err != nil {
				k.Error(err)
			}
			results[i] = r
		})
	}
	wg.Wait()
	loser, want := results[1], "changed\ntwo\n"
	if results[0].IsError {
		loser, want = results[0], "one\nchanged\n"
	}
	if results[0].IsError == results[1].IsError || loser.Code() != "REVISION_CONFLICT" {
		k.Errorf("%s\n%s", results[0].Raw, results[1].Raw)
	}
	if got := k.content("real/f"); got != want {
		k.Errorf("the file is %q, want %q", got, want)
	}
}
