package main

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/rigbridge/rigbridge/api/status"
)

// tunnelLine says how a tunnel is, since when, why and how often its client was started again.
func tunnelLine(t status.Tunnel, now time.Time) string {
	line := fmt.Sprintf("Tunnel %s: %s for %s", t.ID, t.State, duration.HumanDuration(now.Sub(time.UnixMilli(t.Since))))
	if t.State != "ready" && t.Message != "" {
		line += ": " + t.Message
	}
	if t.Restarts > 0 {
		line += fmt.Sprintf(" (%s)", count(int(t.Restarts), "restart"))
	}
	return line
}

// lookAtTunnels finds tunnels that should be up and are not.
func (c *connection) lookAtTunnels(ctx context.Context) finding {
	s, err := c.status(ctx)
	if err != nil {
		return finding{err: fmt.Errorf("how the tunnels are is not known: %w", err)}
	}
	good := "no tunnel is declared: ChatGPT reaches this computer once there is one (rig-bridge tunnel start)"
	for i, t := range s.Tunnels {
		if t.State == "degraded" {
			return finding{err: fmt.Errorf("%s", tunnelLine(t, time.Now()))}
		}
		if i == 0 {
			good = ""
		} else {
			good += "; "
		}
		good += tunnelLine(t, time.Now())
	}
	return finding{good: good}
}
