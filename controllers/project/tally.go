package project

import (
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// tally is what projects have, kept as changes come. The zero value is empty.
type tally struct {
	mu       sync.Mutex
	projects map[string]*counts
	of       map[string]string          // the project of a thread
	unread   map[string]map[string]bool // the handoffs of a thread that nobody has read
}

type counts struct {
	threads int32
	used    *metav1.MicroTime // the latest; it stays when the thread goes
}

func (t *tally) thread(th *v1alpha1.Thread) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.of == nil {
		t.of, t.projects = map[string]string{}, map[string]*counts{}
	}
	c := t.projects[th.Spec.ProjectRef.Name]
	if c == nil {
		c = &counts{}
		t.projects[th.Spec.ProjectRef.Name] = c
	}
	if _, known := t.of[th.Name]; !known { // a thread stays with its project
		t.of[th.Name] = th.Spec.ProjectRef.Name
		c.threads++
	}
	if at := th.Status.LastUsedTime; c.used == nil || at != nil && c.used.Before(at) {
		c.used = at
	}
}

func (t *tally) withoutThread(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if project, known := t.of[name]; known {
		t.projects[project].threads--
		delete(t.of, name)
	}
}

func (t *tally) handoff(h *v1alpha1.Handoff) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unread == nil {
		t.unread = map[string]map[string]bool{}
	}
	all := t.unread[h.Spec.ThreadRef.Name]
	if all == nil {
		all = map[string]bool{}
		t.unread[h.Spec.ThreadRef.Name] = all
	}
	if h.Spec.Acknowledged {
		delete(all, h.Name)
	} else {
		all[h.Name] = true
	}
}

func (t *tally) withoutHandoff(h *v1alpha1.Handoff) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if all := t.unread[h.Spec.ThreadRef.Name]; all != nil {
		if delete(all, h.Name); len(all) == 0 {
			delete(t.unread, h.Spec.ThreadRef.Name)
		}
	}
}

// projectOf returns the project of a thread, "" if the thread is not known.
func (t *tally) projectOf(thread string) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.of[thread]
}

// status returns what a project has.
func (t *tally) status(project string) (st v1alpha1.ProjectStatus) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.projects[project]; c != nil {
		st.Threads, st.LastUsedTime = c.threads, c.used.DeepCopy()
	}
	for thread, handoffs := range t.unread {
		if t.of[thread] == project {
			st.UnreadHandoffs += int32(len(handoffs))
		}
	}
	return st
}

// forget is called when a project is gone.
func (t *tally) forget(project string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.projects[project]; c != nil && c.threads == 0 {
		delete(t.projects, project)
	}
}
