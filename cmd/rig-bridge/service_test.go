package main

import (
	"strings"
	"testing"
)

// A service must not point to a program that is removed when go run, or this test, ends.
func TestServiceOfATemporaryProgram(t *testing.T) {
	if path, err := ownPath(); err == nil || !strings.Contains(err.Error(), "hack/install") {
		t.Errorf("%s, %v", path, err)
	}
}
