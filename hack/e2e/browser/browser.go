package browser

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	cdpbrowser "github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/storage"
	"github.com/chromedp/cdproto/target"
	"github.com/chromedp/chromedp"
)

// Patience is how long what must come may take; the machine may be busy.
const Patience = 60 * time.Second

// names of the browser on Debian and elsewhere; the first one found is used.
var names = []string{"chromium", "chromium-browser", "google-chrome"}

func find() string {
	for _, name := range names {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	return ""
}

// chromium is the process that all tests of a package share: starting one takes longer than most tests.
var chromium struct {
	sync.Mutex
	ctx context.Context
	end func()
}

// Shut ends the process, if one was started. TestMain calls it after the tests.
func Shut() {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.end != nil {
		chromium.end()
		chromium.ctx, chromium.end = nil, nil
	}
}

func running(path string) (context.Context, error) {
	chromium.Lock()
	defer chromium.Unlock()
	if chromium.ctx != nil {
		return chromium.ctx, nil
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.DisableGPU)
	if os.Getuid() == 0 { // Chromium's sandbox wants another account
		options = append(options, chromedp.NoSandbox)
	}
	allocator, end := chromedp.NewExecAllocator(context.Background(), options...)
	ctx, cancel := chromedp.NewContext(allocator)
	if err := chromedp.Do(ctx); err != nil {
		cancel()
		end()
		return nil, err
	}
	chromium.ctx, chromium.end = ctx, func() {
		cancel()
		end()
	}
	return ctx, nil
}

// Browser is a browser as a test sees it: nothing is shared with the browsers of other tests, no cookie, no storage,
// no shared worker.
type Browser struct {
	ctx context.Context

	scripts []string

	mu         sync.Mutex
	expected   []string
	complaints []string
}

// Start returns a browser for the length of a test, which fails for each complaint of a page or a shared worker that
// was not expected. Where there is no Chromium the test is skipped.
func Start(t testing.TB) *Browser {
	t.Helper()
	path := find()
	if path == "" {
		t.Skip("needs chromium: hack/test installs it")
	}
	process, err := running(path)
	if err != nil {
		t.Fatalf("start %s: %v", path, err)
	}
	ctx, cancel := chromedp.NewContext(process, chromedp.WithNewBrowserContext())
	b := &Browser{ctx: ctx}
	t.Cleanup(func() {
		cancel()
		b.judge(t)
	})
	if err := chromedp.Do(ctx); err != nil {
		t.Fatalf("make a browser context: %v", err)
	}
	return b
}

// hear takes down what the shared workers complained about: they repeat it to who attaches. Attaching earlier would
// keep a worker alive that nobody uses any more.
func (b *Browser) hear(t testing.TB) {
	t.Helper()
	for _, id := range b.workers(t) {
		ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithTargetID(id), chromedp.WithListener(b.note), chromedp.WithDetachOnCancel())
		_ = chromedp.Do(ctx) // one that has ended meanwhile complains no more
		cancel()
	}
}

// Expect lets pages complain with messages that hold a text. Use it for what the test itself brings about, such as a
// daemon that does not answer while it restarts.
func (b *Browser) Expect(text string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.expected = append(b.expected, text)
}

func (b *Browser) judge(t testing.TB) {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		expected := false
		for _, e := range b.expected {
			expected = expected || strings.Contains(c, e)
		}
		if !expected {
			t.Errorf("the console: %s", c)
		}
	}
}

// Before has a script run in each document of tabs that are opened later, before those of the page.
func (b *Browser) Before(script string) { b.scripts = append(b.scripts, script) }

// Grant lets the pages of an origin show notifications.
func (b *Browser) Grant(t testing.TB, origin string) {
	t.Helper()
	_, err := chromedp.CallBrowser(b.ctx, cdpbrowser.SetPermission, cdpbrowser.SetPermissionParams{
		Permission: &cdpbrowser.PermissionDescriptor{Name: "notifications"}, Setting: cdpbrowser.PermissionSettingGranted, Origin: origin,
		BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID})
	if err != nil {
		t.Fatalf("grant notifications: %v", err)
	}
}

// SetCookie sets a cookie of an address, as its server would: scripts cannot read it.
func (b *Browser) SetCookie(t testing.TB, address, name, value string) {
	t.Helper()
	cookie := &network.CookieParam{Name: name, Value: value, URL: address, HTTPOnly: true, SameSite: network.CookieSameSiteStrict}
	_, err := chromedp.CallBrowser(b.ctx, storage.SetCookies, storage.SetCookiesParams{
		Cookies: []*network.CookieParam{cookie}, BrowserContextID: chromedp.FromContext(b.ctx).BrowserContextID})
	if err != nil {
		t.Fatalf("set a cookie: %v", err)
	}
}

// Open opens a tab.
func (b *Browser) Open(t testing.TB, address string) *Tab {
	t.Helper()
	ctx, cancel := chromedp.NewContext(b.ctx, chromedp.WithListener(b.note))
	tab := &Tab{browser: b, ctx: ctx, cancel: cancel}
	t.Cleanup(func() { tab.Close(t) })
	if err := chromedp.Do(ctx); err != nil { // the tab lives as long as this context, not as that of one step
		t.Fatalf("open a tab: %v", err)
	}
	for _, script := range b.scripts {
		if _, err := chromedp.Call(ctx, page.AddScriptToEvaluateOnNewDocument, page.AddScriptToEvaluateOnNewDocumentParams{Source: script}); err != nil {
			t.Fatalf("add a script: %v", err)
		}
	}
	tab.run(t, "open "+withoutFragment(address), chromedp.EmulateViewport(1280, 900), chromedp.Navigate(address))
	return tab
}

// withoutFragment is an address as it may be logged.
func withoutFragment(address string) string {
	before, _, _ := strings.Cut(address, "#")
	return before
}

// Workers counts the shared workers that run.
func (b *Browser) Workers(t testing.TB) int {
	t.Helper()
	return len(b.workers(t))
}

func (b *Browser) workers(t testing.TB) (ids []target.ID) {
	t.Helper()
	targets, err := chromedp.Targets(b.ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range targets {
		if info.Type == "shared_worker" && info.BrowserContextID == chromedp.FromContext(b.ctx).BrowserContextID {
			ids = append(ids, info.TargetID)
		}
	}
	return ids
}
