package operation

import (
	"fmt"
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
