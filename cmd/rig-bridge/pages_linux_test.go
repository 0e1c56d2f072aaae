package main

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"testing"
)

// programPages is how much of the program's file is in this process's memory, in KB.
func programPages(t *testing.T) (kb int) {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Open("/proc/self/smaps")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	own := false
	for in := bufio.NewScanner(f); in.Scan(); {
		var start, end uint64
		var resident int
		if n, _ := fmt.Sscanf(in.Text(), "%x-%x", &start, &end); n == 2 {
			own = strings.HasSuffix(in.Text(), exe)
		}
		if n, _ := fmt.Sscanf(in.Text(), "Rss: %d kB", &resident); n == 1 && own {
			kb += resident
		}
	}
	return kb
}

// TestPagesOfTheStartAreLeft: the program's file leaves the memory, and all goes on.
func TestPagesOfTheStartAreLeft(t *testing.T) {
	before := programPages(t)
	if before < 8<<10 {
		t.Fatalf("only %d KB of the program are in memory", before)
	}
	if err := leavePages(); err != nil {
		t.Fatal(err)
	}
	if after := programPages(t); after > before/2 {
		t.Errorf("%d KB of %d are still in memory", after, before)
	}
	_, c := running(t, &settings{})
	open(t, c, t.TempDir())
}
