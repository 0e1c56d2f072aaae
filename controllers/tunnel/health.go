package tunnel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// pollMetric is the gauge in which the client says when it last polled with success, in seconds since 1970.
const pollMetric = "commands_poll_last_successful_timestamp_seconds"

// Bounds of what is believed of a client.
const (
	healthWait = 5 * time.Second // for each answer
	healthSize = 1 << 20         // bytes of an answer
	healthURL  = 1 << 10         // bytes of the file with the address
)

// health is what a client says of itself.
type health struct {
	ready bool      // it can use this daemon
	poll  time.Time // its last successful poll, by its own clock; zero if there was none
	err   error     // it says nothing that can be understood; in our words, never the client's
}

// askHealth asks the client whose address is in the file.
func askHealth(ctx context.Context, file string) health {
	base, err := healthAddress(file)
	if err != nil {
		return health{err: err}
	}
	metrics, status, err := ask(ctx, base.JoinPath("metrics"))
	if err != nil || status != http.StatusOK {
		return health{err: errors.New("it does not answer at its health address")}
	}
	poll, err := pollTime(metrics)
	if err != nil {
		return health{err: err}
	}
	text, status, err := ask(ctx, base.JoinPath("readyz"))
	if err != nil {
		return health{err: errors.New("it does not answer at its health address")}
	}
	// The client also calls itself ready when this daemon refused its bearer.
	return health{ready: status == http.StatusOK && !bytes.Contains(text, []byte("requires auth")), poll: poll}
}

// healthAddress reads the address that the client wrote. It must be on this computer.
func healthAddress(file string) (*url.URL, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, errors.New("it has not said at which address its health is told")
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, healthURL+1))
	u, perr := url.Parse(strings.TrimSpace(string(b)))
	if err != nil || perr != nil || len(b) > healthURL || u.Scheme != "http" || u.User != nil {
		return nil, errors.New("what it says about its health address cannot be understood")
	}
	if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsLoopback() {
		return nil, errors.New("its health address is not on this computer")
	}
	return u, nil
}

// healthClient goes straight to the client, wherever proxies and redirects point.
var healthClient = &http.Client{
	Timeout:       healthWait,
	Transport:     &http.Transport{DisableKeepAlives: true, MaxResponseHeaderBytes: 64 << 10},
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

func ask(ctx context.Context, at *url.URL) (body []byte, status int, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return nil, 0, err
	}
	r.Header.Set("Accept", "text/plain")
	resp, err := healthClient.Do(r)
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	body, err = io.ReadAll(io.LimitReader(resp.Body, healthSize+1))
	if err == nil && len(body) > healthSize {
		err = fmt.Errorf("more than %d bytes", healthSize)
	}
	return body, resp.StatusCode, err
}

// pollTime reads the latest poll from metrics. Zero means that there was none.
func pollTime(metrics []byte) (latest time.Time, err error) {
	unreadable := errors.New("what it says about its polls cannot be understood")
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(metrics))
	if err != nil {
		return latest, unreadable
	}
	for _, m := range families[pollMetric].GetMetric() {
		seconds := m.GetGauge().GetValue()
		if m.GetGauge() == nil {
			seconds = m.GetUntyped().GetValue()
		}
		if math.IsNaN(seconds) || seconds < 0 || seconds > 1e11 { // in milliseconds, or no time at all
			return time.Time{}, unreadable
		}
		whole, part := math.Modf(seconds)
		if at := time.Unix(int64(whole), int64(part*1e9)); seconds > 0 && at.After(latest) {
			latest = at
		}
	}
	return latest, nil
}
