// Package browser drives a real Chromium without a window, as a person would: tabs, clicks on what has a name,
// keys, window sizes and color schemes. It notes all that a tab complains about on its console, errors of shared
// workers and violations of the content security policy among them, and fails the test for what was not expected.
//
//	b := browser.Start(t)
//	tab := b.Open(t, link)
//	tab.Click(t, "button", "Abort make check")
//	tab.Await(t, `document.body.innerText.includes("Cancelled")`)
package browser
