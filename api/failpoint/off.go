//go:build !failpoints && !hops

package failpoint

// Enabled says whether the build has failpoints.
const Enabled = false

// Hit does nothing in this build.
func Hit(string) {}
