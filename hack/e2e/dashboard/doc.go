// Package dashboard tests the dashboard as a person has it: the real daemon, a real Chromium, while an assistant
// works. The login and what strangers get is tested without a browser as well.
package dashboard
