package browser

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Tab is one tab.
type Tab struct {
	browser *Browser
	ctx     context.Context
	cancel  context.CancelFunc
}

// note takes down what a page or a worker complains about.
func (b *Browser) note(event any) {
	text := ""
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type != runtime.ConsoleAPICalledTypeError && e.Type != runtime.ConsoleAPICalledTypeWarning && e.Type != runtime.ConsoleAPICalledTypeAssert {
			return
		}
		text = "console." + string(e.Type)
		for _, a := range e.Args {
			text += " " + string(a.Value) + a.Description
		}
	case *runtime.EventExceptionThrown:
		text = fmt.Sprint("exception: ", e.ExceptionDetails.Text)
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
	case *log.EventEntryAdded:
		if e.Entry.Level != log.EntryLevelError && e.Entry.Level != log.EntryLevelWarning {
			return
		}
		text = fmt.Sprintf("%s %s: %s %s", e.Entry.Source, e.Entry.Level, e.Entry.Text, e.Entry.URL)
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.complaints = append(b.complaints, text)
}

// Close closes the tab.
func (tab *Tab) Close(t testing.TB) {
	t.Helper()
	if tab.ctx.Err() == nil {
		tab.browser.hear(t)
	}
	tab.cancel()
}

func (tab *Tab) run(t testing.TB, what string, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, Patience)
	defer cancel()
	if err := chromedp.Do(ctx, steps...); err != nil {
		tab.explain(t)
		t.Fatalf("%s: %v", what, err)
	}
}

// explain shows what the tab shows, for the log of a test that fails.
func (tab *Tab) explain(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, 10*time.Second)
	defer cancel()
	text, err := chromedp.Run(ctx, chromedp.Evaluate[string](`location.href.split("#code")[0] + "\n" + document.body.innerText.slice(0, 4000)`))
	if err == nil {
		t.Logf("the tab shows:\n%s", text)
	}
}

// Go goes to another address.
func (tab *Tab) Go(t testing.TB, address string) {
	t.Helper()
	tab.run(t, "go to "+withoutFragment(address), chromedp.Navigate(address))
}

// Reload loads the page again.
func (tab *Tab) Reload(t testing.TB) {
	t.Helper()
	tab.run(t, "reload", chromedp.Reload())
}

// Eval evaluates an expression, a promise's result if it is one, and decodes it into v; nil drops it.
func (tab *Tab) Eval(t testing.TB, expression string, v any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(tab.ctx, Patience)
	defer cancel()
	raw, err := chromedp.Run(ctx, chromedp.Evaluate[[]byte](expression, chromedp.EvalAwaitPromise, chromedp.EvalAsValue))
	if err == nil && v != nil {
		err = json.Unmarshal(raw, v)
	}
	if err != nil {
		tab.explain(t)
		t.Fatalf("evaluate %s: %v", shorten(expression), err)
	}
}

// Await waits until an expression is true. An expression that throws is not, and the page may be loaded again
// meanwhile.
func (tab *Tab) Await(t testing.TB, expression string) {
	t.Helper()
	look := fmt.Sprintf(`new Promise((done) => {
		const end = performance.now() + 5000;
		(function look() {
			let holds = false;
			try { holds = %s; } catch {}
			if (holds || performance.now() > end) done(Boolean(holds)); else setTimeout(look, 20);
		})();
	})`, expression)
	for deadline := time.Now().Add(Patience); time.Now().Before(deadline); {
		ctx, cancel := context.WithTimeout(tab.ctx, Patience)
		holds, err := chromedp.Run(ctx, chromedp.Evaluate[bool](look, chromedp.EvalAwaitPromise))
		cancel()
		if err == nil && holds {
			return
		}
		if tab.ctx.Err() != nil {
			t.Fatalf("the tab is closed: %v", err)
		}
		if err != nil { // the page went away under the promise
			time.Sleep(50 * time.Millisecond)
		}
	}
	tab.explain(t)
	t.Fatalf("never true: %s", expression)
}

// Shows waits until the page shows a text.
func (tab *Tab) Shows(t testing.TB, text string) {
	t.Helper()
	tab.Await(t, fmt.Sprintf("document.body.innerText.includes(%s)", quote(text)))
}

// Hides waits until the page does not show a text.
func (tab *Tab) Hides(t testing.TB, text string) {
	t.Helper()
	tab.Await(t, fmt.Sprintf("!document.body.innerText.includes(%s)", quote(text)))
}

// found is an expression for the visible element of a selector whose accessible name holds a text.
func found(selector, name string) string {
	return fmt.Sprintf(`[...document.querySelectorAll(%s)].find((e) => e.checkVisibility() && !e.disabled &&
		(e.getAttribute("aria-label") ?? e.textContent).includes(%s))`, quote(selector), quote(name))
}

// Has waits for an element with a name.
func (tab *Tab) Has(t testing.TB, selector, name string) {
	t.Helper()
	tab.Await(t, found(selector, name)+" !== undefined")
}

// Click waits for an element with a name and clicks it with the mouse, where it is.
func (tab *Tab) Click(t testing.TB, selector, name string) {
	t.Helper()
	tab.Has(t, selector, name)
	var at struct{ X, Y float64 }
	tab.Eval(t, fmt.Sprintf(`(() => { const e = %s; e.scrollIntoView({block: "center"}); const r = e.getBoundingClientRect();
		return {X: r.x + r.width / 2, Y: r.y + r.height / 2}; })()`, found(selector, name)), &at)
	tab.run(t, "click "+name, chromedp.MouseClickXY(at.X, at.Y))
}

// Type sends keys to what has the focus. A page that handles a key itself keeps its character from being typed, as
// with a real keyboard.
func (tab *Tab) Type(t testing.TB, keys string) {
	t.Helper()
	tab.run(t, "type", chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		for _, key := range keys {
			var down *input.DispatchKeyEventParams
			for _, e := range kb.Encode(key) {
				switch {
				case e.Type == kb.KeyChar && down != nil:
					down.Type, down.Text, down.UnmodifiedText = input.DispatchKeyEventTypeKeyDown, e.Text, e.UnmodifiedText
				case down == nil:
					down = e
				default:
					if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *down); err != nil {
						return err
					}
					if _, err := cdp.Call(ctx, target, input.DispatchKeyEvent, *e); err != nil {
						return err
					}
				}
			}
		}
		return nil
	}))
}

// Keys with names.
const (
	Enter  = kb.Enter
	Escape = kb.Escape
	TabKey = kb.Tab
)

// Look sets the window's size, in CSS pixels, and the color scheme, light or dark.
func (tab *Tab) Look(t testing.TB, width, height int64, scheme string) {
	t.Helper()
	tab.run(t, "set the look", chromedp.EmulateViewport(width, height), chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
		return err
	}))
}

// ScreenshotDir is where Screenshot writes; nothing is written without it. It must be outside the repository.
const ScreenshotDir = "RIG_BRIDGE_SCREENSHOTS"

// Pictures says whether Screenshot writes.
func Pictures() bool { return os.Getenv(ScreenshotDir) != "" }

// Screenshot writes a picture of what the tab shows, for people to look at.
func (tab *Tab) Screenshot(t testing.TB, name string) {
	t.Helper()
	if !Pictures() {
		return
	}
	dir := os.Getenv(ScreenshotDir)
	png, err := chromedp.Run(tab.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		t.Fatalf("take a screenshot: %v", err)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Worked is the processor time that the page's main thread has used for its tasks, since the first time this was asked.
func (tab *Tab) Worked(t testing.TB) time.Duration {
	t.Helper()
	if _, err := chromedp.Call(tab.ctx, performance.Enable, performance.EnableParams{TimeDomain: performance.EnableTimeDomainThreadTicks}); err != nil {
		t.Fatalf("measure the page: %v", err)
	}
	r, err := chromedp.Call(tab.ctx, performance.GetMetrics, cdp.Empty{})
	if err != nil {
		t.Fatalf("measure the page: %v", err)
	}
	for _, m := range r.Metrics {
		if m.Name == "TaskDuration" {
			return time.Duration(m.Value * float64(time.Second))
		}
	}
	t.Fatal("the browser does not tell how long its tasks took")
	return 0
}

// Violation is something that axe-core finds wrong.
type Violation struct {
	ID, Impact, Help string
	Nodes            []struct {
		HTML           string
		FailureSummary string
	}
}

// Axe checks what the tab shows with axe-core, whose source is given.
func (tab *Tab) Axe(t testing.TB, source []byte) (violations []Violation) {
	t.Helper()
	tab.Eval(t, string(source)+"\n;null", nil)
	tab.Eval(t, `axe.run(document, {resultTypes: ["violations"]}).then((r) => r.violations)`, &violations)
	return violations
}

func quote(s string) string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // text always encodes
	}
	return string(b)
}

func shorten(s string) string { return s[:min(len(s), 200)] }
