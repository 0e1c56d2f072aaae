package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/cli-runtime/pkg/resource"
	"k8s.io/client-go/rest"

	"github.com/rigbridge/rigbridge/api/status"
)

func statusCommand(conn *connection) *cobra.Command {
	o := &statusOutput{connection: conn}
	c := &cobra.Command{
		Use:   "status",
		Short: "Show on one screen: projects, threads, running commands, what waits for you, what was left running",
		Long: "Show on one screen: projects, threads, running commands, what waits for you, and processes that outlived their\n" +
			"command, with the command that stops them. What is not a terminal gets all of it. Exit code 1 if no daemon runs.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			err := o.run(c.Context())
			if err != nil && o.json {
				o.printError(err)
			}
			return err
		},
	}
	c.Flags().BoolVar(&o.json, "json", false, "print the status as JSON; without a daemon an object with the member error")
	c.Flags().BoolVarP(&o.watch, "watch", "w", false, "keep the screen up to date, over restarts of the daemon")
	return c
}

// statusOutput prints the status, once or again and again.
type statusOutput struct {
	*connection
	json, watch bool
	drawn       bool // something is on the screen
}

func (o *statusOutput) run(ctx context.Context) error {
	if o.watch {
		return o.follow(ctx)
	}
	s, err := o.status(ctx)
	if err != nil {
		return err
	}
	return o.print(s)
}

// print prints the status as it is now.
func (o *statusOutput) print(s *status.Status) error {
	if o.json {
		return o.printJSON(s)
	}
	to, terminal := terminalSize(o.streams.Out)
	if to.rows > 0 && !o.watch {
		to.rows-- // for the prompt
	}
	return o.draw(statusPage(s, o.dashboardURL(), time.Now(), to, terminal && coloured()), terminal)
}

// draw writes lines, over those that are on the screen if it is watched.
func (o *statusOutput) draw(lines []string, terminal bool) error {
	text := strings.Join(lines, "\n") + "\n"
	switch {
	case o.watch && terminal:
		begin := "\x1b[H" // home
		if !o.drawn {
			begin = "\x1b[2J\x1b[H" // clear, home
		}
		text = begin + strings.Join(lines, "\x1b[K\n") + "\x1b[K\x1b[J" // clear to the end of the line, of the screen
	case o.drawn:
		text = "\n" + text
	}
	o.drawn = true
	_, err := io.WriteString(o.streams.Out, text)
	return err
}

func (o *statusOutput) printJSON(v any) error {
	b, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return err
	}
	_, err = o.streams.Out.Write(append(b, '\n'))
	return err
}

// printError keeps the promise that the output is JSON whatever happens.
func (o *statusOutput) printError(err error) {
	_ = o.printJSON(map[string]string{"error": strings.TrimPrefix(sentence(err), "rigctl: ")}) // the error itself follows on stderr
}

// dashboardURL is where the dashboard is, or empty if that cannot be told.
func (c *connection) dashboardURL() string {
	e, _, err := c.endpoint()
	if err != nil {
		return ""
	}
	at, err := url.Parse(e.URL)
	if err != nil {
		return ""
	}
	return at.JoinPath("..", "/").String()
}

// Waits of a watched status: the least time between two looks, and how often a screen shows how old things are.
const (
	leastPause = 250 * time.Millisecond
	tick       = time.Second
)

// follow prints the status and then each change, over restarts of the daemon, until the process is ended.
func (o *statusOutput) follow(ctx context.Context) error {
	s, err := o.status(ctx)
	if err != nil {
		return err
	}
	if err := o.print(s); err != nil {
		return err
	}
	changes := make(chan struct{}, 1)
	go o.changes(ctx, changes)
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	_, terminal := terminalSize(o.streams.Out)
	for down := false; ; {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
			if down || !terminal || o.json {
				continue
			}
		case <-changes:
			now, err := o.status(ctx)
			if refused(err) {
				return err
			}
			if err != nil {
				if !down {
					o.lost(err, terminal)
				}
				down = true
				continue
			}
			s, down = now, false
			time.Sleep(leastPause)
		}
		if err := o.print(s); err != nil {
			return err
		}
	}
}

// refused says whether the daemon answered and does not want to; any other error may pass.
func refused(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code < http.StatusInternalServerError && status.Status().Code != 0
}

// lost says that the daemon has ended. The screen keeps what was known last.
func (o *statusOutput) lost(err error, terminal bool) {
	const notice = "rigctl: rig-bridge has ended; waiting for it to come back"
	switch {
	case o.json:
		o.printError(err)
	case terminal:
		fmt.Fprintf(o.streams.Out, "\x1b[H%s\x1b[K", notice)
	default:
		fmt.Fprintln(o.streams.ErrOut, notice)
	}
}

// changes tells of changes that the daemon's stream tells of, and of its end. It connects again until ctx is done.
func (o *statusOutput) changes(ctx context.Context, tell chan<- struct{}) {
	note := func() {
		select {
		case tell <- struct{}{}:
		default: // the last one is not taken yet
		}
	}
	for wait := firstWait; ctx.Err() == nil; wait = min(2*wait, lastWait) {
		if o.stream(ctx, note) {
			wait = firstWait
		}
		note()
		select {
		case <-ctx.Done():
		case <-time.After(wait):
		}
	}
}

// stream notes each line of the daemon's stream until that ends. It returns false if there was none.
func (o *statusOutput) stream(ctx context.Context, note func()) (any bool) {
	client, err := o.plainClient()
	if err != nil {
		return false
	}
	body, err := client.Get().AbsPath("/api/watch").Stream(ctx)
	if err != nil {
		return false
	}
	defer body.Close()
	for lines := bufio.NewReader(body); ; any = true {
		_, err := lines.ReadSlice('\n')
		switch {
		case errors.Is(err, bufio.ErrBufferFull): // only that there is a line matters
		case err != nil:
			return any
		default:
			note()
		}
	}
}

// status reads the status document.
func (c *connection) status(ctx context.Context) (*status.Status, error) {
	s := &status.Status{}
	return s, c.ask(ctx, http.MethodGet, "/api/status", nil, s)
}

// ask sends JSON to an endpoint of the dashboard and decodes the answer into v, unless that is nil.
func (c *connection) ask(ctx context.Context, method, path string, body, v any) error {
	if err := c.reachable(ctx); err != nil {
		return err
	}
	client, err := c.plainClient()
	if err != nil {
		return err
	}
	r := client.Verb(method).AbsPath(path).SetHeader("Accept", "application/json")
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return err
		}
		r.SetHeader("Content-Type", "application/json").Body(b)
	}
	b, err := r.Do(ctx).Raw()
	if err != nil {
		return fmt.Errorf("ask the daemon for %s: %w", path, err)
	}
	if v == nil {
		return nil
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("the daemon's answer to %s: %w", path, err)
	}
	return nil
}

// plainClient is a client for the daemon's endpoints that are no Kubernetes API.
func (c *connection) plainClient() (rest.Interface, error) {
	cfg := c.config()
	cfg.GroupVersion, cfg.NegotiatedSerializer = &schema.GroupVersion{}, resource.UnstructuredPlusDefaultContentConfig().NegotiatedSerializer
	return rest.UnversionedRESTClientFor(cfg)
}
