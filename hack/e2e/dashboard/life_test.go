package dashboard

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rigbridge/rigbridge/hack/e2e/browser"
	"github.com/rigbridge/rigbridge/hack/e2e/daemon"
)

// A browser says itself that a daemon that is down does not answer.
const notAnswered = "net::ERR_"

// The page says since when the daemon is away, and goes on by itself when it is back.
func TestRestartOfTheDaemon(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	e.browser.Expect(notAnswered)
	w := e.begin(t, "Before")
	e.assistant.OK(t, "ls", daemon.Args{"workspace_id": w.workspace})
	tab.Go(t, e.Base()+"/#thread="+w.thread)
	tab.Has(t, "h1", "Before")
	tab.Shows(t, "ls")
	tab.Eval(t, "window.same = true", nil)
	for _, end := range []func() error{e.Kill, func() error { _, err := e.Stop(); return err }} {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		tab.Shows(t, "Offline since")
		e.Revive(t)
		tab.Shows(t, "Live")
		tab.Hides(t, "Offline since")
	}
	// Read-only calls were in memory alone: they are gone, and the page does not show them for ever.
	tab.Await(t, `!document.querySelector("main").innerText.includes("ls")`)
	after := e.begin(t, "After")
	e.run(t, after, "echo still here")
	tab.Has(t, "a", "After")
	tab.Go(t, e.Base()+"/#thread="+after.thread)
	tab.Shows(t, "echo still here")
	tab.Await(t, "window.same === true") // it was not loaded again
}

// A login that has ended shows how to log in, and the page comes back to where it was.
func TestLoginThatEnded(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	e.browser.Expect(notLoggedIn)
	w := e.begin(t, "Kept")
	tab.Go(t, e.Base()+"/#thread="+w.thread)
	tab.Has(t, "h1", "Kept")
	second := e.open(t, "thread="+w.thread)
	e.rigctl(t, "dashboard", "--revoke")
	for _, one := range []*browser.Tab{tab, second} {
		one.Shows(t, "This browser is not logged in")
		one.Await(t, fmt.Sprintf("location.hash === %q", "#thread="+w.thread))
	}
	e.open(t, "").Close(t)
	for _, one := range []*browser.Tab{tab, second} {
		one.Shows(t, "Live")
		one.Has(t, "h1", "Kept")
	}
}

// A login that nobody used for a month ends in the middle of a page that is open.
func TestLoginThatExpired(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	e.browser.Expect(notLoggedIn)
	w := e.begin(t, "Kept")
	tab.Has(t, "a", "Kept")
	key, err := os.ReadFile(filepath.Join(e.StateDir(), "dashboard-key"))
	if err != nil {
		t.Fatal(err)
	}
	address, err := url.Parse(e.Base())
	if err != nil {
		t.Fatal(err)
	}
	value := func(issued time.Time) string {
		b := append(binary.BigEndian.AppendUint64(nil, uint64(issued.Unix())), make([]byte, 16)...)
		mac := hmac.New(sha256.New, key)
		mac.Write(b)
		return base64.RawURLEncoding.EncodeToString(mac.Sum(b))
	}
	name := "rig-bridge-" + address.Port()
	e.browser.SetCookie(t, e.Base(), name, value(time.Now().Add(-29*24*time.Hour)))
	tab.Reload(t)
	tab.Shows(t, "Live")
	e.browser.SetCookie(t, e.Base(), name, value(time.Now().Add(-31*24*time.Hour)))
	tab.Click(t, "a", "Kept")
	tab.Shows(t, "This browser is not logged in")
	tab.Await(t, fmt.Sprintf("location.hash === %q", "#thread="+w.thread))
	e.open(t, "").Close(t)
	tab.Shows(t, "Live")
	tab.Has(t, "h1", "Kept")
}

// Several tabs share one connection and show the same; each alert comes once over all of them, also after they are
// loaded again.
func TestTabsAndAlerts(t *testing.T) {
	t.Parallel()
	b := browser.Start(t)
	e := newEnv(t)
	e.browser = b
	b.Grant(t, e.Base())
	b.Before(`{
		const Real = window.Notification;
		window.Notification = new Proxy(Real, {construct(target, [title, options]) {
			localStorage.setItem("shown", (localStorage.getItem("shown") ?? "") + title + ": " + options.body + "\n");
			return new target(title, options);
		}});
	}`)
	w := e.begin(t, "Alerted")
	e.run(t, w, "true")
	old := e.handOff(t, w, "completed", "Older than the switch.")
	one, two, three := e.open(t, "project="+w.project), e.open(t, ""), e.open(t, "")
	if n := b.Workers(t); n != 1 {
		t.Errorf("three tabs have %d shared workers", n)
	}
	one.Click(t, "[role=switch]", "Browser alerts")
	one.Await(t, `document.querySelector("[role=switch][aria-checked=true]") !== null`)
	shown := func(tab *browser.Tab) (text string) {
		tab.Eval(t, `localStorage.getItem("shown") ?? ""`, &text)
		return text
	}
	next := e.begin(t, "Next")
	e.run(t, next, "true")
	e.handOff(t, next, "needs_input", "Only once.")
	for _, tab := range []*browser.Tab{one, two, three} {
		tab.Shows(t, "Inbox (2)")
	}
	one.Await(t, `(localStorage.getItem("shown") ?? "").includes("Only once.")`)
	one.Close(t) // the tab that alerted, perhaps
	two.Reload(t)
	three.Reload(t)
	two.Shows(t, "Inbox (2)")
	three.Shows(t, "Inbox (2)")
	last := e.begin(t, "Last")
	e.run(t, last, "true")
	e.handOff(t, last, "failed", "And this one.")
	two.Await(t, `(localStorage.getItem("shown") ?? "").includes("And this one.")`)
	text := shown(two)
	if strings.Count(text, "Only once.") != 1 || strings.Count(text, "And this one.") != 1 || strings.Contains(text, "Older") {
		t.Errorf("alerts: %s", text)
	}
	// What one tab does the other shows.
	two.Go(t, e.Base()+"/#handoff="+old)
	three.Shows(t, "Inbox (2)")
	two.Go(t, e.Base()+"/#inbox")
	two.Click(t, "button", "Mark all read")
	three.Shows(t, "Inbox (0)")
}

// What assistants and commands say is text, whatever it looks like.
func TestHostileText(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	const title = `<img src=x onerror="window.pwned=1">` + "\u202e" + `cod.exe</title><script>window.pwned=1</script>`
	dir := filepath.Join(e.dir, `<b onclick=alert(1)>&amp;`+"\u202e"+`"'`)
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	e.dir = dir
	w := e.begin(t, title)
	put(t, filepath.Join(dir, "hostile"), "<script>window.pwned=1</script>\x1b]0;title\x07\x1b[2J\x1b[31;1mred\x1b[0m \u202egnitirw \u2066x\x00\xff\xfe\r\nover\rOVER\n"+
		"\x1b]8;;javascript:window.pwned=1\x07link\x1b]8;;\x07\n"+strings.Repeat("\x1b[", 2000)+"\n"+strings.Repeat("x", 1<<20)+"\nend of it\n")
	e.pipe(t, "wait")
	id := e.command(t, w, `: '<img src=x onerror="window.pwned=1">'; cat hostile; cat wait; echo finished`)
	check := func(where string) {
		t.Helper()
		var bad []string
		tab.Eval(t, `[
			...(window.pwned === undefined ? [] : ["a script ran"]),
			...[...document.querySelectorAll("main script, main img, nav img, main b, nav b, main style, main iframe, [onclick], [onerror]")].map((e) => e.outerHTML),
			...[...document.querySelectorAll("a")].filter((a) => !a.getAttribute("href").startsWith("#")).map((a) => a.outerHTML),
			...(/[\u0000-\u0008\u000b-\u001f\u007f\u202a-\u202e\u2066-\u2069]/.test(document.body.innerText + document.title) ? ["control characters are in the text"] : []),
		]`, &bad)
		for _, b := range bad {
			t.Errorf("%s: %.300s", where, b)
		}
	}
	tab.Shows(t, "end of it")
	tab.Shows(t, "<script>window.pwned=1</script>")
	tab.Shows(t, "<img src=x")
	check("overview")
	tab.Look(t, 1280, 900, "light")
	tab.Screenshot(t, "hostile")
	e.tell(t, "wait", "\x1b[9999999Ccontinued\n")
	e.assistant.Must(t, "operation_wait", daemon.Args{"workspace_id": w.workspace, "operation_id": id})
	e.run(t, w, strings.Repeat("echo 'a long command <b>' ; ", 2000))
	e.handOff(t, w, "blocked", `<img src=x onerror="window.pwned=1"> `+"\u202e"+`[link](javascript:alert(1))`+"\n\n\n"+strings.Repeat("long", 400))
	for i, view := range [][2]string{{"thread=" + w.thread, "<img src=x"}, {"operation=" + id, "bash"}, {"project=" + w.project, "<b onclick"}, {"inbox", "Inbox (1)"},
		{`thread=<img src=x onerror="window.pwned=1">`, "Unknown thread"}} {
		e.show(t, tab, view[0], view[1])
		check(view[0])
		tab.Screenshot(t, fmt.Sprintf("hostile-%d", i))
	}
}

// A long output is shown to its end, and the page holds a bounded part of it.
func TestLongOutput(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Long")
	e.pipe(t, "wait")
	e.command(t, w, `seq 200000; cat wait; seq 200001 200010; sleep 300`)
	tab.Shows(t, "200000")
	e.tell(t, "wait", "go\n")
	tab.Shows(t, "200010")
	var elements int
	tab.Eval(t, `document.querySelectorAll(".output *").length`, &elements)
	if elements > 20_000 {
		t.Errorf("the page holds %d elements of the output", elements)
	}
	tab.Click(t, "button", "Abort")
	tab.Click(t, "dialog button", "Abort it")
	tab.Shows(t, "No command runs")
}

// A few outputs are followed at a time, and when one of them ends the next is followed by itself.
func TestOutputsTakeTurns(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Many")
	ids := map[string]string{}
	for _, name := range []string{"first", "second", "third", "fourth", "fifth"} {
		e.pipe(t, name)
		ids[name] = e.command(t, w, "echo '<'"+name+"'>'; cat "+name)
		tab.Shows(t, "cat "+name)
	}
	tab.Await(t, `[...document.querySelectorAll(".output")].filter((o) => o.textContent.includes("<")).length === 3`)
	tab.Await(t, `[...document.querySelectorAll("button")].filter((b) => b.textContent === "Follow this output").length === 2`)
	tab.Look(t, 1280, 1400, "light")
	tab.Screenshot(t, "many")
	e.tell(t, "second", "done\n")
	tab.Shows(t, "<fourth>")
	tab.Hides(t, "<second>")
	tab.Click(t, "button", "Follow this output")
	tab.Shows(t, "<fifth>")
	tab.Await(t, `[...document.querySelectorAll("button")].filter((b) => b.textContent === "Follow this output").length === 1`)
	for _, name := range []string{"first", "third", "fourth", "fifth"} {
		e.tell(t, name, "done\n")
	}
	tab.Shows(t, "No command runs")
}

// What the stream leaves out is read when somebody asks for it.
func TestEarlierActivity(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Busy")
	for i := range 24 {
		e.run(t, w, fmt.Sprintf("echo call %d", i))
	}
	tab.Go(t, e.Base()+"/#thread="+w.thread)
	tab.Shows(t, "echo call 23")
	tab.Await(t, `document.querySelectorAll("table.activity tbody tr").length === 20`)
	tab.Click(t, "button", "Show earlier activity")
	tab.Click(t, "button", "Show more (4 calls)")
	tab.Await(t, `document.querySelectorAll("table.activity tbody tr").length === 24`)
	e.assistant.OK(t, "workspace_close", daemon.Args{"workspace_id": w.workspace})
	tab.Shows(t, "Saved; resume it")
	tab.Reload(t)
	tab.Shows(t, "Saved; resume it")
	tab.Await(t, `document.querySelectorAll("table.activity tbody tr").length >= 20`)
}

func TestManyThreads(t *testing.T) {
	t.Parallel()
	const threads = 5000
	e, tab := opened(t, "")
	w := e.begin(t, "First")
	e.makeThreads(t, w.project, threads)
	began := time.Now()
	tab.Await(t, `document.body.innerText.includes("5,001")`)
	t.Logf("%d threads arrived in %v after they were made", threads, time.Since(began))
	began = time.Now()
	tab.Reload(t)
	tab.Await(t, `document.body.innerText.includes("5,001")`)
	t.Logf("the page was loaded again in %v", time.Since(began))
	var elements int
	tab.Eval(t, `document.querySelectorAll("*").length`, &elements)
	if elements > 2000 {
		t.Errorf("the page has %d elements", elements)
	}
	tab.Eval(t, `document.querySelector("#filter").focus()`, nil)
	tab.Type(t, "thread 4711")
	tab.Shows(t, "1 thread found")
	tab.Look(t, 1280, 900, "light")
	tab.Screenshot(t, "threads")
	tab.Click(t, "a", "Thread 4711")
	tab.Has(t, "h1", "Thread 4711")
	// It stays live beside them all.
	e.run(t, w, "echo beside thousands")
	tab.Go(t, e.Base()+"/#thread="+w.thread)
	tab.Shows(t, "echo beside thousands")
}

// makeThreads makes threads over the API.
func (e *env) makeThreads(t *testing.T, project string, n int) {
	t.Helper()
	next := make(chan int)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			for i := range next {
				body, err := json.Marshal(map[string]any{"apiVersion": "rigbridge.dev/v1alpha1", "kind": "Thread", "metadata": map[string]any{"name": fmt.Sprintf("thread-%d", i)},
					"spec": map[string]any{"projectRef": map[string]any{"name": project}, "cwd": e.dir, "title": fmt.Sprintf("Thread %d", i)}})
				if err != nil {
					t.Error(err)
				}
				req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, e.Base()+objects+"threads", bytes.NewReader(body))
				if err != nil {
					t.Error(err)
					continue
				}
				req.Header = http.Header{"Authorization": {e.Authorization()}, "Content-Type": {"application/json"}}
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Error(err)
					continue
				}
				if resp.Body.Close(); resp.StatusCode != http.StatusCreated {
					t.Errorf("make a thread: %d", resp.StatusCode)
				}
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	group.Wait()
}

// show goes to a place of the page and waits until it is there, with all that is read for it.
func (e *env) show(t *testing.T, tab *browser.Tab, fragment, heading string) {
	t.Helper()
	tab.Go(t, e.Base()+"/#"+fragment)
	tab.Has(t, "main h1", heading)
	tab.Await(t, `!document.querySelector("main").innerText.includes("Reading")`)
}

// look is how the window is.
type look struct {
	name          string
	width, height int64
	scheme        string
}

// Every view, in light and dark, wide and narrow, by axe-core and by keyboard.
func TestAccessibility(t *testing.T) {
	t.Parallel()
	e, tab := opened(t, "")
	w := e.begin(t, "Accessible")
	put(t, filepath.Join(e.dir, "a.txt"), "one\ntwo\n")
	read := e.assistant.OK(t, "read", daemon.Args{"workspace_id": w.workspace, "path": "a.txt"})
	e.assistant.OK(t, "edit", daemon.Args{"workspace_id": w.workspace, "request_key": daemon.Key(), "path": "a.txt", "expected_revision": read.String("revision"),
		"edits": []any{map[string]any{"oldText": "two", "newText": "2"}}})
	e.run(t, w, "echo fails; exit 3")
	e.run(t, w, "sleep 300 >/dev/null 2>&1 &")
	done := e.begin(t, "Handed over")
	e.run(t, done, "true")
	e.handOff(t, done, "needs_input", "Which one?")
	running := e.command(t, w, `printf '\033[31mred \033[32mgreen \033[33myellow \033[34mblue \033[35mmagenta \033[36mcyan \033[37mwhite \033[90mgray \033[41mback \033[0;7minverse\033[0m\n'; sleep 300`)
	e.show(t, tab, "thread="+w.thread, "Accessible")
	tab.Has(t, "table.activity a", "edit")
	var edit string
	tab.Eval(t, `[...document.querySelectorAll("table.activity a")].find((a) => a.textContent.startsWith("edit")).hash.slice(1)`, &edit)
	views := []struct{ name, fragment, heading string }{
		{"overview", "", "Overview"}, {"inbox", "inbox", "Inbox (1)"}, {"thread", "thread=" + w.thread, "Accessible"}, {"handoff", "thread=" + done.thread, "Handed over"},
		{"project", "project=" + w.project, filepath.Base(e.dir)}, {"operation", "operation=" + running, "bash"}, {"edit", edit, "edit"},
		{"unknown", "thread=none", "Unknown thread"}}
	looks := []look{{"light-wide", 1280, 900, "light"}, {"dark-narrow", 380, 800, "dark"}}
	if browser.Pictures() { // for people to look at
		looks = append(looks, look{"light-narrow", 380, 800, "light"}, look{"dark-wide", 1280, 900, "dark"})
	}
	for _, look := range looks {
		tab.Look(t, look.width, look.height, look.scheme)
		for _, view := range views {
			name := view.name
			e.show(t, tab, view.fragment, view.heading)
			if name == "edit" {
				tab.Shows(t, "+2")
			}
			if name == "overview" || name == "thread" || name == "operation" {
				tab.Await(t, `document.querySelector(".output").innerText.includes("magenta")`)
			}
			tab.Screenshot(t, name+"-"+look.name)
			var wider bool
			tab.Eval(t, `document.documentElement.scrollWidth > innerWidth`, &wider)
			if wider {
				t.Errorf("%s is wider than the window, %s", name, look.name)
			}
			accessible(t, tab, name+", "+look.name)
		}
	}
	tab.Look(t, 1280, 900, "light")
	tab.Go(t, e.Base()+"/#")
	tab.Click(t, "button", "Help")
	tab.Has(t, "dialog", "Keys")
	accessible(t, tab, "help")
	tab.Screenshot(t, "help")
	tab.Type(t, browser.Escape)
	tab.Await(t, `document.querySelector("dialog") === null`)
	// By keyboard alone: the filter, a thread, the inbox.
	tab.Type(t, "/")
	tab.Await(t, `document.activeElement.id === "filter"`)
	tab.Type(t, "handed")
	tab.Shows(t, "1 thread found")
	tab.Type(t, browser.Escape)
	tab.Await(t, `document.querySelector("#filter").value === ""`)
	tab.Eval(t, `document.activeElement.blur()`, nil)
	tab.Type(t, "i")
	tab.Has(t, "h1", "Inbox")
	tab.Await(t, `document.activeElement === document.querySelector("main h1")`)
}
