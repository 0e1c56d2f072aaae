package server

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// faults are what the API machinery reports as errors of ours, while somebody listens.
var faults struct {
	sync.Mutex
	listening bool
	heard     []string
}

func init() {
	utilruntime.ErrorHandlers = append(utilruntime.ErrorHandlers, func(_ context.Context, err error, message string, more ...any) {
		faults.Lock()
		defer faults.Unlock()
		if faults.listening {
			faults.heard = append(faults.heard, fmt.Sprint(message, " ", err, " ", more))
		}
	})
}

// A client that leaves in the middle of an answer, such as a closed tab, is no fault of ours.
func TestClientsThatLeaveAreNoFault(t *testing.T) {
	e := newEnv(t)
	for i := range 200 {
		create(t, e.Client, &v1alpha1.Handoff{ObjectMeta: named(fmt.Sprintf("handoff-%d", i)), Spec: v1alpha1.HandoffSpec{
			ThreadRef: v1alpha1.LocalReference{Name: "thread"}, RunRef: v1alpha1.LocalReference{Name: "run"},
			Reason: v1alpha1.HandoffCompleted, Summary: strings.Repeat("s", 2000)}})
	}
	over := httptest.NewUnstartedServer(e.Handler)
	over.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(4096); err != nil { // the answer does not fit
			t.Error(err)
		}
		return ctx
	}
	over.Start()
	faults.Lock()
	faults.listening, faults.heard = true, nil
	faults.Unlock()
	for _, query := range []string{"", "?watch=true&sendInitialEvents=true&allowWatchBookmarks=true&resourceVersionMatch=NotOlderThan"} {
		for range 5 {
			leave(t, over.Listener.Addr().String(), "/apis/"+v1alpha1.GroupVersion.String()+"/namespaces/default/handoffs"+query)
		}
	}
	over.Close() // waits for the handlers
	faults.Lock()
	defer faults.Unlock()
	faults.listening = false
	for _, fault := range faults.heard {
		t.Errorf("reported: %.300s", fault)
	}
}

// leave asks for something and goes when the answer begins.
func leave(t *testing.T, address, path string) {
	t.Helper()
	var d net.Dialer
	c, err := d.DialContext(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Fprintf(c, "GET %s HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n", path); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(io.LimitReader(c, 4096)).ReadString('\n')
	if err != nil || !strings.Contains(line, " 200 ") {
		t.Fatalf("%q %v", line, err)
	}
}
