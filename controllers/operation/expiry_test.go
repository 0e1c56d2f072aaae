package operation

import (
	"fmt"
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func finished(workspace, name string) *v1alpha1.Operation {
	return &v1alpha1.Operation{ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.OperationSpec{WorkspaceRef: v1alpha1.LocalReference{Name: workspace}}}
}

func names(gone []finishedLookup) (all []string) {
	for _, g := range gone {
		all = append(all, g.name)
	}
	return all
}

func TestFinishedLookupsAreBounded(t *testing.T) {
	var e expiry
	now := time.Now()
	for i := range maxLookups {
		if gone := e.add(finished("a", fmt.Sprint(i)), now); len(gone) != 0 {
			t.Fatalf("after %d: %v have to go", i, names(gone))
		}
	}
	if gone := names(e.add(finished("b", "other"), now)); len(gone) != 0 {
		t.Errorf("another workspace's call made %v go", gone)
	}
	if gone := names(e.add(finished("a", "one more"), now)); len(gone) != 1 || gone[0] != "0" {
		t.Errorf("one more than the bound made %v go, want the oldest", gone)
	}
}

// TestFinishedLookupsAreBoundedInAll: many workspaces, closed or not, do not add up.
func TestFinishedLookupsAreBoundedInAll(t *testing.T) {
	var e expiry
	now := time.Now()
	var gone []string
	for i := range maxAllLookups + 3 {
		gone = append(gone, names(e.add(finished(fmt.Sprint("workspace ", i%100), fmt.Sprint(i)), now))...)
	}
	if want := []string{"0", "1", "2"}; !slices.Equal(gone, want) {
		t.Errorf("%v had to go, want the oldest of all, %v", gone, want)
	}
	if gone := e.due(now.Add(lookupAge + time.Second)); len(gone) != maxAllLookups || len(e.byWorkspace) != 0 || e.all.Len() != 0 {
		t.Errorf("%d went after an hour, %d workspaces and %d operations are left", len(gone), len(e.byWorkspace), e.all.Len())
	}
}

func TestFinishedLookupsAge(t *testing.T) {
	var e expiry
	now := time.Now()
	e.add(finished("a", "old"), now)
	e.add(finished("a", "young"), now.Add(lookupAge/2))
	if gone := e.due(now.Add(lookupAge)); len(gone) != 0 {
		t.Errorf("%v have to go at the hour", names(gone))
	}
	if gone := names(e.due(now.Add(lookupAge + time.Second))); len(gone) != 1 || gone[0] != "old" {
		t.Errorf("%v have to go after an hour, want the old one", gone)
	}
	if gone := names(e.due(now.Add(2 * lookupAge))); len(gone) != 1 || gone[0] != "young" || len(e.byWorkspace) != 0 {
		t.Errorf("%v went, %d workspaces are left", gone, len(e.byWorkspace))
	}
}
