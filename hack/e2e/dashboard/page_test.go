package dashboard

import (
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/rigbridge/rigbridge/hack/e2e/browser"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// A browser that is not logged in complains itself of the 401 that it gets.
const notLoggedIn = "status of 401"

func TestLogin(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	b.Expect(notLoggedIn)
	e := newEnv(t)
	w := e.begin(t, "Deep")
	waiting := b.Open(t, e.Base()+"/#thread="+w.thread)
	waiting.Shows(t, "rigctl dashboard")
	waiting.Look(t, 1280, 900, "light")
	waiting.Screenshot(t, "login")
	accessible(t, waiting, "login page")

	link := e.link(t, "thread="+w.thread)
	first := b.Open(t, link)
	first.Shows(t, "Live")
	first.Has(t, "h1", "Deep")
	first.Await(t, `location.pathname === "/" && location.hash === `+fmt.Sprintf("%q", "#thread="+w.thread))
	var history string
	first.Eval(t, `history.length + " " + location.href + " " + document.referrer + " " + document.cookie`, &history)
	if strings.Contains(history, "code") {
		t.Errorf("the code is left in the page: %s", history)
	}
	// The tab that waited goes on by itself, to what it was opened for.
	waiting.Shows(t, "Live")
	waiting.Has(t, "h1", "Deep")
	// The link is used; in a browser that is logged in it still opens the page, in another one it does not.
	again := b.Open(t, link)
	again.Shows(t, "Live")
	again.Has(t, "h1", "Deep")
	other := browser.Start(t)
	other.Expect(notLoggedIn)
	stranger := other.Open(t, link)
	stranger.Shows(t, "This link has been used")
	stranger.Await(t, `!location.href.includes("code")`)
}

// Output comes as it is printed, with its colors; the person stops the command; the assistant is told.
func TestRunStreamAbort(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	tab.Shows(t, "No command runs")
	w := e.begin(t, "Stream")
	e.pipe(t, "more")
	id := e.command(t, w, `printf 'one \033[31mred\033[0m\n'; cat more; sleep 300`)
	tab.Shows(t, "Running (1)")
	tab.Shows(t, "one red")
	tab.Await(t, `[...document.querySelectorAll(".output span")].some((s) => s.textContent === "red" && getComputedStyle(s).color !== getComputedStyle(s.parentElement).color)`)
	e.tell(t, "more", "typed into the pipe\n")
	tab.Shows(t, "typed into the pipe")
	tab.Look(t, 1280, 900, "light")
	tab.Screenshot(t, "running")

	tab.Click(t, "button", "Abort")
	tab.Has(t, "dialog", "Abort this command?")
	tab.Screenshot(t, "abort")
	tab.Click(t, "dialog button", "Keep")
	tab.Await(t, `document.querySelector("dialog") === null`)
	tab.Click(t, "button", "Abort")
	tab.Click(t, "dialog button", "Abort it")
	r := e.assistant.Must(t, "operation_wait", daemon.Args{"workspace_id": w.workspace, "operation_id": id})
	if r.Code() != "COMMAND_CANCELLED" {
		t.Errorf("the assistant is told %s: %s", r.Code(), r.Text())
	}
	tab.Shows(t, "No command runs")
	tab.Go(t, e.Base()+"/#operation="+id)
	tab.Shows(t, "Stopped by")
	tab.Shows(t, "person")
	tab.Shows(t, "typed into the pipe")
	tab.Screenshot(t, "operation")
}

func TestLeftovers(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Left")
	started := e.run(t, w, "sleep 300 >/dev/null 2>&1 & echo $!").Text()
	pid, err := strconv.Atoi(regexp.MustCompile(`\d+`).FindString(started))
	if err != nil || syscall.Kill(pid, 0) != nil {
		t.Fatalf("nothing was left running: %s", started)
	}
	tab.Shows(t, "Left running (1)")
	tab.Shows(t, fmt.Sprint("pid ", pid))
	tab.Await(t, `/pid \d+, \d+s old/.test(document.querySelector(".processes").innerText)`)
	tab.Screenshot(t, "leftovers")
	tab.Click(t, "button", "Stop what")
	tab.Click(t, "dialog button", "Stop them")
	tab.Hides(t, "Left running")
	eventually(t, "the process is gone", func() bool { return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) })
}

func TestEditShowsItsDiff(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Edit")
	put(t, filepath.Join(e.dir, "a.txt"), "one\ntwo\n")
	read := e.assistant.OK(t, "read", daemon.Args{"workspace_id": w.workspace, "path": "a.txt"})
	e.assistant.OK(t, "edit", daemon.Args{"workspace_id": w.workspace, "request_key": daemon.Key(), "path": "a.txt", "expected_revision": read.String("revision"),
		"edits": []any{map[string]any{"oldText": "two", "newText": "<b>2</b>"}}})
	tab.Go(t, e.Base()+"/#thread="+w.thread)
	tab.Shows(t, "edit a.txt")
	tab.Click(t, "table a", "edit")
	tab.Shows(t, "+<b>2</b>")
	tab.Shows(t, "-two")
	tab.Look(t, 1280, 900, "dark")
	tab.Screenshot(t, "edit-dark")
}

// The person is told that it is their turn, reads it, and rigctl agrees.
func TestHandoffAndInbox(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Report")
	e.run(t, w, "true")
	tab.Shows(t, "Inbox (0)")
	id := e.handOff(t, w, "needs_input", "Which database?\nSecond line.")
	tab.Shows(t, "Inbox (1)")
	tab.Shows(t, "Which database?")
	tab.Await(t, `document.title.includes("1")`)
	tab.Click(t, "a", "Inbox")
	tab.Has(t, "h1", "Inbox (1)")
	tab.Look(t, 1280, 900, "light")
	tab.Screenshot(t, "inbox")
	tab.Click(t, "article a", "Report")
	tab.Await(t, `location.hash === "#handoff=`+id+`"`)
	tab.Has(t, "h1", "Report")
	tab.Shows(t, "Inbox (0)")
	tab.Screenshot(t, "thread")
	eventually(t, "read", func() bool { return e.status(t).UnreadCount == 0 })
	if out := e.rigctl(t, "inbox"); !strings.Contains(out, "Nothing waits for you") {
		t.Errorf("rigctl inbox: %s", out)
	}
	second := e.begin(t, "Second")
	e.run(t, second, "true")
	e.handOff(t, second, "completed", "All done.")
	tab.Shows(t, "Inbox (1)")
	tab.Click(t, "a", "Inbox")
	tab.Click(t, "button", "Mark all read")
	tab.Shows(t, "Nothing waits for you")
}

// A person who reads can have the page stand still, and look at what is new when they want to.
func TestPause(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Still")
	tab.Go(t, e.Base()+"/#thread="+w.thread)
	tab.Has(t, "h1", "Still")
	e.pipe(t, "more")
	id := e.command(t, w, "echo 'be'gun; cat more")
	tab.Shows(t, "begun")
	tab.Click(t, "button", "Pause updates")
	tab.Shows(t, "Paused since")
	e.tell(t, "more", "more of it\n")
	e.assistant.Must(t, "operation_wait", daemon.Args{"workspace_id": w.workspace, "operation_id": id})
	e.run(t, w, "true first")
	other := e.open(t, "thread="+w.thread) // by the same connection
	other.Shows(t, "true first")
	var text string
	tab.Eval(t, `new Promise((done) => setTimeout(() => done(document.body.innerText), 500))`, &text)
	if !strings.Contains(text, "Running (1)") || strings.Contains(text, "true first") || strings.Contains(text, "more of it") {
		t.Errorf("it does not stand still:\n%s", text)
	}
	tab.Click(t, "button", "Refresh")
	tab.Shows(t, "true first")
	tab.Shows(t, "Paused since")
	e.run(t, w, "true second")
	other.Shows(t, "true second")
	tab.Look(t, 380, 800, "light")
	tab.Screenshot(t, "paused-narrow")
	tab.Look(t, 1280, 900, "light")
	tab.Screenshot(t, "paused")
	accessible(t, tab, "paused")
	// The daemon's end is told all the same, and what the person does is seen.
	running := e.command(t, w, "sleep 300")
	tab.Click(t, "button", "Refresh")
	tab.Click(t, "button", "Abort")
	tab.Click(t, "dialog button", "Abort it")
	e.assistant.Must(t, "operation_wait", daemon.Args{"workspace_id": w.workspace, "operation_id": running})
	tab.Type(t, "p")
	tab.Shows(t, "Live")
	tab.Shows(t, "Cancelled")
	tab.Shows(t, "true second")
}

func TestDeepLinks(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	e := newEnv(t)
	e.browser = b
	w := e.begin(t, "Linked")
	r := e.run(t, w, "echo linked output")
	id := r.String("operation_id")
	handoff := e.handOff(t, w, "completed", "The linked summary.")
	for fragment, shows := range map[string]string{
		"thread=" + w.thread: "Linked", "project=" + w.project: filepath.Base(e.dir), "operation=" + id: "echo linked output", "handoff=" + handoff: "The linked summary.",
	} {
		tab := e.open(t, fragment)
		tab.Await(t, fmt.Sprintf(`location.hash === "#%s"`, fragment))
		tab.Await(t, fmt.Sprintf(`document.querySelector("main").innerText.includes(%q)`, shows))
		tab.Close(t)
	}
	tab := e.open(t, "thread=none")
	tab.Await(t, `document.querySelector("main").innerText.length > 0`)
	tab.Screenshot(t, "missing")
}

// accessible fails the test for what axe-core finds wrong with what the tab shows.
func accessible(t *testing.T, tab *browser.Tab, what string) {
	t.Helper()
	for _, v := range tab.Axe(t, axe(t)) {
		for _, n := range v.Nodes {
			t.Errorf("%s: %s (%s): %s\n%s\n%s", what, v.ID, v.Impact, v.Help, n.HTML, n.FailureSummary)
		}
	}
}
