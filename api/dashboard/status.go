package dashboard

import (
	"context"
	"net/http"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/rigbridge/rigbridge/api/status"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// status serves the status document: the view, and the runs, which the view does not hold all.
func (d *Dashboard) status(w http.ResponseWriter, r *http.Request) {
	if err := d.view.start(r.Context()); err != nil {
		refuse(w, http.StatusServiceUnavailable, "Rig Bridge is stopping.")
		return
	}
	world := d.view.world()
	var err error
	if world.Runs, err = d.runs(r.Context()); err != nil {
		d.Log.Error(err, "The runs could not be read")
		refuse(w, http.StatusInternalServerError, "The runs could not be read.")
		return
	}
	now := d.Now()
	s := world.View(now)
	s.Version, s.StartedAt, s.UptimeSeconds = d.Version, d.started.UnixMilli(), int64(now.Sub(d.started).Seconds())
	s.Clients = d.Clients()
	reply(w, http.StatusOK, s)
}

// world sorts the view's objects by kind.
func (v *view) world() *status.World {
	about := map[*v1alpha1.Operation]string{}
	w := &status.World{Describe: func(o *v1alpha1.Operation) string { return about[o] }}
	for _, e := range v.all() {
		switch o := e.object.(type) {
		case *v1alpha1.Project:
			w.Projects = append(w.Projects, o)
		case *v1alpha1.Thread:
			w.Threads = append(w.Threads, o)
		case *v1alpha1.Workspace:
			w.Workspaces = append(w.Workspaces, o)
		case *v1alpha1.Handoff:
			w.Handoffs = append(w.Handoffs, o)
		case *v1alpha1.Tunnel:
			w.Tunnels = append(w.Tunnels, o)
		case *v1alpha1.Operation:
			w.Operations, about[o] = append(w.Operations, o), e.described()
		}
	}
	return w
}

func (d *Dashboard) runs(ctx context.Context) (all []*v1alpha1.Run, err error) {
	o := &client.ListOptions{Namespace: v1alpha1.Namespace, Limit: pageSize}
	for {
		page := &v1alpha1.RunList{}
		if err := d.Client.List(ctx, page, o); err != nil {
			return nil, err
		}
		for i := range page.Items {
			all = append(all, &page.Items[i])
		}
		if o.Continue = page.Continue; o.Continue == "" {
			return all, nil
		}
	}
}
