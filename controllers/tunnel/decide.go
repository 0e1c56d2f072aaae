package tunnel

import "time"

// Times of supervision.
const (
	// firstPause is the pause before a client that ended is started again; it doubles with each failure in a row.
	firstPause = 2 * time.Second
	longPause  = time.Minute
	// steady is how long a client has to live for its end not to count as one in a row.
	steady = time.Minute
	// startLook is the pause between looks at a client that has not worked yet.
	startLook = time.Second
	// retry is the pause before something that could not be done is tried again.
	retry = 10 * time.Second
)

// act is what is to be done next with a tunnel.
type act int

const (
	rest   act = iota // nothing, until something changes
	wait              // nothing, for a while
	settle            // stop what an earlier life of the daemon left
	begin             // start the client
	end               // stop the client
	look              // find out how the client, the route and the control plane are
)

// decision is what decide says.
type decision struct {
	do    act
	cause string        // of end: the reason for which the client is started again, empty if it was only asked for
	after time.Duration // of wait
}

// observed is what decide looks at.
type observed struct {
	now time.Time

	unwanted   bool // the tunnel is deleted or suspended, or the daemon ends
	unattended bool // the watchdog is off
	interval   time.Duration

	settled   bool      // nothing of an earlier life of the daemon runs
	busy      bool      // something is being done
	running   bool      // a client runs
	outdated  bool      // it was started for another spec
	notBefore time.Time // whatever is to be done, not earlier than this
	failures  int       // ends in a row of clients that did not live long

	worked    bool      // the client has worked, some time
	looked    time.Time // the last look; zero if there was none since the client was started, or ended
	prompt    bool      // look at once
	fault     string    // why the client should be started again, by the last look
	reachable bool      // the control plane was, at the last look
}

// decide says what to do next.
func decide(o observed) decision {
	switch {
	case o.busy:
		return decision{do: rest} // its end wakes us
	case o.now.Before(o.notBefore) && !(o.unwanted && o.settled && !o.running):
		return decision{do: wait, after: o.notBefore.Sub(o.now)}
	case !o.settled:
		return decision{do: settle}
	case o.unwanted && o.running, o.outdated:
		return decision{do: end}
	case o.unwanted:
		return decision{do: rest}
	case !o.running:
		return decideStart(o)
	case o.prompt || o.looked.IsZero():
		return decision{do: look}
	case o.fault != "" && o.reachable && !o.unattended:
		return decision{do: end, cause: o.fault}
	}
	pause := o.interval
	if !o.worked {
		pause = min(pause, startLook)
	}
	return lookAgain(o, pause)
}

// decideStart is about a tunnel without a client. A restart waits for the control plane.
func decideStart(o observed) decision {
	switch {
	case o.failures == 0, o.unattended:
		return decision{do: begin}
	case o.looked.IsZero() || o.prompt:
		return decision{do: look}
	case o.reachable:
		return decision{do: begin}
	}
	return lookAgain(o, o.interval)
}

func lookAgain(o observed, pause time.Duration) decision {
	if next := o.looked.Add(pause); o.now.Before(next) {
		return decision{do: wait, after: next.Sub(o.now)}
	}
	return decision{do: look}
}

// pauseAfter is how long to wait after so many failures in a row.
func pauseAfter(failures int) time.Duration {
	if failures == 0 {
		return 0
	}
	pause := firstPause
	for range failures - 1 {
		if pause *= 2; pause >= longPause {
			return longPause
		}
	}
	return pause
}

// inARow counts on: a client ended after a life of that length, by itself or because it did not work.
func inARow(failures int, life time.Duration, byItself bool) int {
	if life >= steady {
		failures = 0
		if !byItself {
			return 0
		}
	}
	return failures + 1
}
