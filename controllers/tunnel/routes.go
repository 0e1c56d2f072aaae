package tunnel

import "context"

// Routes tells about the way to the internet.
type Routes interface {
	// Current names the default routes. The text is the same as long as they are, and empty if there is none or
	// they cannot be told.
	Current() string
	// Watch calls changed whenever routes may have changed, until ctx is done.
	Watch(ctx context.Context, changed func())
	// Watched says whether routes can be told here at all.
	Watched() bool
}
