// Command tunnelclient stands in for OpenAI's tunnel-client in tests: it takes the same command line, writes the
// same health file, serves the same endpoints, and misbehaves as the file "behaviour" beside it says. Lines of
// that file, which is read at the start and for each answer:
//
//	exit=CODE           end at once
//	exit-after=SPAN     end with code 7 after a while, as in 300ms
//	hang                do nothing at all
//	no-url              do not write the health file
//	url=TEXT            write this into the health file
//	silent              accept requests and never answer
//	refuse-term         ignore SIGTERM
//	flood               write to standard output without end
//	leak                write the key and the bearer to standard output
//	child               start a process in a session of its own that ignores SIGTERM and lives on
//	ready=no|auth       /readyz says that it is not ready, or that it was not let in
//	poll=WHEN           the last successful poll: now (default), never, start, garbage, or a span from now, as in -70s
//
// Beside it, it appends a line of JSON to "lives" for each start, and to "violations" if another client of the same
// folder is alive.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func folder() string { return filepath.Dir(os.Args[0]) }

// behaviour reads what to do.
func behaviour() map[string]string {
	b, _ := os.ReadFile(filepath.Join(folder(), "behaviour")) // none is the best
	do := map[string]string{}
	for line := range strings.SplitSeq(string(b), "\n") {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), "="); name != "" {
			do[name] = value
		}
	}
	return do
}

func run() error {
	began := time.Now()
	flags, err := parse(os.Args[1:])
	if err != nil {
		return err
	}
	if err := checkIn(); err != nil {
		return err
	}
	do := behaviour()
	if _, on := do["refuse-term"]; on {
		signal.Ignore(syscall.SIGTERM)
	}
	if code, on := do["exit"]; on {
		n, err := strconv.Atoi(code)
		if err != nil {
			return err
		}
		os.Exit(n)
	}
	if _, on := do["child"]; on {
		if err := startChild(); err != nil {
			return err
		}
	}
	if _, on := do["leak"]; on {
		if err := leak(flags); err != nil {
			return err
		}
	}
	if _, on := do["flood"]; on {
		go flood()
	}
	if after, on := do["exit-after"]; on {
		span, err := time.ParseDuration(after)
		if err != nil {
			return err
		}
		time.AfterFunc(span, func() { os.Exit(7) })
	}
	if _, on := do["hang"]; on {
		select {}
	}
	return serve(flags["--health.url-file"], do, began)
}

// parse takes "run" and pairs of a flag and its value, and refuses what is missing as the real client does.
func parse(args []string) (map[string]string, error) {
	if len(args) == 0 || args[0] != "run" || len(args)%2 == 0 {
		return nil, fmt.Errorf("want run and pairs of flags and values, got %q", args)
	}
	flags := map[string]string{}
	for i := 1; i < len(args); i += 2 {
		flags[args[i]] = args[i+1]
	}
	for _, name := range []string{"--control-plane.tunnel-id", "--control-plane.api-key", "--mcp.server-url", "--mcp.extra-headers",
		"--mcp.discovery-extra-headers", "--health.listen-addr", "--health.url-file"} {
		if flags[name] == "" {
			return nil, fmt.Errorf("%s is missing", name)
		}
	}
	return flags, nil
}

// alive is a lock that ends with the process. It stays open.
var alive *os.File

// checkIn notes this life, and that there is another one, which must not be.
func checkIn() (err error) {
	alive, err = os.OpenFile(filepath.Join(folder(), "alive"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	if err := syscall.Flock(int(alive.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		if err := note("violations", os.Getpid()); err != nil {
			return err
		}
	}
	return note("lives", map[string]any{"pid": os.Getpid(), "args": os.Args[1:], "env": os.Environ()})
}

func note(file string, what any) error {
	b, err := json.Marshal(what)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(folder(), file), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(b, '\n'))
	return errors.Join(err, f.Close())
}

func startChild() error {
	cmd := exec.Command("sh", "-c", "trap '' TERM; while :; do sleep 0.2; done")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd.Start()
}

func leak(flags map[string]string) error {
	for _, flag := range []string{flags["--control-plane.api-key"], strings.TrimPrefix(flags["--mcp.extra-headers"], "Authorization: ")} {
		secret, err := os.ReadFile(strings.TrimPrefix(flag, "file:"))
		if err != nil {
			return err
		}
		fmt.Printf("the secret is %s and that was it\n", strings.TrimSpace(string(secret)))
	}
	return nil
}

func flood() {
	line := []byte(strings.Repeat("flood ", 200) + "\n")
	for {
		if _, err := os.Stdout.Write(line); err != nil {
			return
		}
	}
}

// serve tells of its health until it is told to end.
func serve(file string, do map[string]string, began time.Time) error {
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) { metrics(w, behaviour(), began) })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) { readyz(w, behaviour()) })
	go func() { fmt.Fprintln(os.Stderr, http.Serve(l, mux)) }()
	address, on := do["url"]
	if !on {
		address = "http://" + l.Addr().String()
	}
	if _, on := do["no-url"]; !on {
		if err := os.WriteFile(file, []byte(address), 0o600); err != nil {
			return err
		}
	}
	told := make(chan os.Signal, 1)
	if _, on := do["refuse-term"]; !on {
		signal.Notify(told, syscall.SIGTERM)
	}
	<-told
	return os.Remove(file)
}

func metrics(w io.Writer, do map[string]string, began time.Time) {
	if _, on := do["silent"]; on {
		select {}
	}
	at := time.Now()
	switch when := do["poll"]; when {
	case "", "now":
	case "never":
		at = time.Unix(0, 0)
	case "start":
		at = began
	case "garbage":
		fmt.Fprint(w, "\x00\xff{{{ commands_poll_last_successful_timestamp_seconds NaN\nwhat 1 2 3 4\n")
		return
	default:
		span, err := time.ParseDuration(when)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		at = at.Add(span)
	}
	fmt.Fprintf(w, "# TYPE liveness gauge\nliveness{otel_scope_name=\"health\"} 1\n"+
		"# TYPE commands_poll_last_successful_timestamp_seconds gauge\n"+
		"commands_poll_last_successful_timestamp_seconds{otel_scope_name=\"controlplane\",otel_scope_version=\"\"} %g\n", float64(at.Unix()))
}

func readyz(w http.ResponseWriter, do map[string]string) {
	switch do["ready"] {
	case "no":
		w.WriteHeader(http.StatusServiceUnavailable)
		fmt.Fprint(w, "mcp probe failed: connection refused")
	case "auth":
		fmt.Fprint(w, "ready (mcp initialize requires auth: 401)")
	default:
		fmt.Fprint(w, "ready")
	}
}
