package e2e

import (
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// slack is what a busy machine may add to a time that a case demands.
const slack = 4 * time.Second

// TestCases runs the cases of the bug log that concern the tools themselves, each by its number, once, against
// one daemon, through MCP. The daemon's account has vi as its editor and lets the group write.
func TestCases(t *testing.T) {
	old := syscall.Umask(0o002)
	d := daemon.Start(t, daemon.Options{Env: []string{"EDITOR=vi", "VISUAL=vi", "GIT_EDITOR=vi"}})
	syscall.Umask(old)
	for _, c := range []struct {
		id  string
		run func(*room)
	}{
		{"B1", mixedLineEndings}, {"B3", byteOrderMarkStays}, {"B5", legacyByteFarAway}, {"B7", latinFileInGit}, {"B8", rewriteSaysWhatIsLost},
		{"C1", replacementIsNoPattern}, {"C3", lookAlikeIsRefused}, {"C6", wrongCharacterInALargeFile}, {"C7", batchIsAllOrNothing}, {"C9", fourMistakes},
		{"D1", chattyBackgroundChild}, {"D3", timeoutReachesTheGroup}, {"D5", noEditorOpens}, {"D9", commandCannotReadTheStream},
		{"D10", hungCommandBlocksNoRead}, {"D13", inputIsAtItsEnd},
		{"G1", endOfTheOutputIsShown}, {"G4", talkativeCommandIsBounded}, {"G6", singleBytes}, {"G7", splitCharacters},
		{"H1", nearName}, {"H3", bothSpellings}, {"H5", linkLoops}, {"H7", pipesAndHugeFiles}, {"H10", twoSpellingsOfOneFile},
		{"I1", executableBitStays}, {"I3", modeOfNewFiles}, {"I6", fullDisk}, {"I8", linksStay},
		{"J1", ignoredPathIsNamed}, {"J3", missingAnchor}, {"J6", searchOfTheRoot},
		{"Q1", hugeOutputAndStop}, {"Q3", backgroundChildren}, {"Q5", pureCRLF}, {"Q8", legacyByteFarAway},
		{"Q10", pipeOverStdio}, {"Q11", hugeLine}, {"Q12", exitCode}, {"Q15", mixedLineEndingsBothWays},
	} {
		t.Run(c.id, func(t *testing.T) { c.run(newRoom(t, d)) })
	}
}

// room is a workspace on a fresh directory.
type room struct {
	*testing.T
	d         *daemon.Daemon
	client    *daemon.Client
	dir       string
	workspace string
}

func newRoom(t *testing.T, d *daemon.Daemon) *room {
	t.Helper()
	k := &room{T: t, d: d, client: d.Client(), dir: realDir(t)}
	k.workspace = k.client.Open(t, k.dir)
	t.Cleanup(func() { k.client.OK(t, "workspace_close", daemon.Args{"workspace_id": k.workspace}) })
	return k
}

func (k *room) path(name string) string { return filepath.Join(k.dir, name) }

func (k *room) put(name, content string) {
	k.Helper()
	put(k, k.path(name), content)
}

func (k *room) content(name string) string {
	k.Helper()
	return text(k, k.path(name))
}

// call calls a tool in the workspace, under a fresh key where the tool wants one.
func (k *room) call(tool string, args daemon.Args) daemon.Result {
	k.Helper()
	args = copyArgs(args, daemon.Args{"workspace_id": k.workspace})
	if tool == "bash" || tool == "write" || tool == "edit" {
		args["request_key"] = daemon.Key()
	}
	return k.client.Must(k, tool, args)
}

func (k *room) ok(tool string, args daemon.Args) daemon.Result {
	k.Helper()
	r := k.call(tool, args)
	if r.IsError {
		k.Fatalf("%s: %s: %s", tool, r.Code(), r.Text())
	}
	return r
}

// edit edits a file at its current revision; texts alternate between old and new.
func (k *room) edit(name string, texts ...string) daemon.Result {
	k.Helper()
	var edits []daemon.Args
	for i := 0; i < len(texts); i += 2 {
		edits = append(edits, daemon.Args{"oldText": texts[i], "newText": texts[i+1]})
	}
	return k.call("edit", daemon.Args{"path": name, "expected_revision": revision(k, k.path(name)), "edits": edits})
}

// becomes puts a file, edits it and checks all its bytes.
func (k *room) becomes(before, after string, texts ...string) {
	k.Helper()
	k.put("f", before)
	if r := k.edit("f", texts...); r.IsError {
		k.Errorf("edit: %s", r.Text())
	}
	if got := k.content("f"); got != after {
		k.Errorf("the file is\n%.300q, want\n%.300q", got, after)
	}
}

// refuses makes an edit that must fail for the reason, say what matches, and leave the file alone.
func (k *room) refuses(name, reason, says string, texts ...string) {
	k.Helper()
	before := k.content(name)
	r := k.edit(name, texts...)
	if !r.IsError || r.String("reason") != reason || r.Structured["effects_may_have_occurred"] == true {
		k.Errorf("%s, want reason %s", r.Raw, reason)
	}
	if !regexp.MustCompile(says).MatchString(r.Text()) {
		k.Errorf("%q does not match %s", r.Text(), says)
	}
	if k.content(name) != before {
		k.Error("the file has changed")
	}
}

// write replaces a file at its current revision.
func (k *room) write(name, content string) daemon.Result {
	k.Helper()
	return k.ok("write", daemon.Args{"path": name, "content": content, "expected_revision": revision(k, k.path(name))})
}

// bash runs a command for at most timeout seconds.
func (k *room) bash(command string, timeout int) daemon.Result {
	k.Helper()
	return k.call("bash", daemon.Args{"command": command, "timeout": timeout})
}

// prints runs a command that must succeed with this output.
func (k *room) prints(want, command string) {
	k.Helper()
	if r := k.bash(command, 60); r.IsError || r.Text() != want {
		k.Errorf("%s: %q, want %q", command, r.Text(), want)
	}
}

// group is the process group of a command that wrote its id into the file pid.
func (k *room) group() int {
	k.Helper()
	id, err := strconv.Atoi(strings.TrimSpace(k.content("pid")))
	if err != nil {
		k.Fatal(err)
	}
	return id
}

// gone fails the test if a process group does not end soon.
func (k *room) gone(group int) {
	k.Helper()
	eventually(k, "the process group is gone", func() bool { return syscall.Kill(-group, 0) == syscall.ESRCH })
}

// within fails the test if something took longer than its case allows.
func (k *room) within(limit time.Duration, began time.Time) {
	k.Helper()
	if took := time.Since(began); took > limit+slack {
		k.Errorf("took %v, the case allows %v", took, limit)
	}
}
