package server

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestCertificate(t *testing.T) {
	dir, now := t.TempDir(), time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	serial := func(at time.Time) string {
		t.Helper()
		c, err := Certificate(dir, at)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"127.0.0.1", "::1", "localhost"} {
			if err := c.Leaf.VerifyHostname(name); err != nil {
				t.Error(err)
			}
		}
		return c.Leaf.SerialNumber.String()
	}
	first := serial(now)
	for _, name := range []string{CertificateFile, "tls.key"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if serial(now.Add(certificateAge/10*8)) != first {
		t.Error("a certificate that is good for long is replaced")
	}
	if serial(now.Add(certificateAge/20*19)) == first {
		t.Error("a certificate in its last tenth is kept")
	}
	for _, name := range []string{"tls.key", CertificateFile} { // a crash between the two files
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		serial(now)
	}
	if err := os.WriteFile(filepath.Join(dir, "tls.key"), []byte("damaged"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Certificate(dir, now); err == nil || !strings.Contains(err.Error(), "remove") {
		t.Errorf("a damaged key gives %v", err)
	}
}

// A pair that cannot be written whole leaves no certificate beside another key: the next start makes both.
func TestCertificateCutOff(t *testing.T) {
	dir, now := t.TempDir(), time.Now()
	if _, err := Certificate(dir, now.Add(-certificateAge)); err != nil {
		t.Fatal(err)
	}
	key := filepath.Join(dir, "tls.key")
	if err := errors.Join(os.Remove(key), os.MkdirAll(filepath.Join(key, "full"), 0o700)); err != nil { // it cannot be replaced
		t.Fatal(err)
	}
	cert, private, err := selfSigned(now)
	if err != nil {
		t.Fatal(err)
	}
	if err := writePair(filepath.Join(dir, CertificateFile), key, cert, private); err == nil {
		t.Error("a folder was replaced")
	}
	if err := os.RemoveAll(key); err != nil {
		t.Fatal(err)
	}
	if c, err := Certificate(dir, now); err != nil || c.Leaf.NotAfter.Before(now) {
		t.Errorf("the next start: %v", err)
	}
}

// One port speaks both: MCP clients come in plain, kubectl over TLS.
func TestBothWays(t *testing.T) {
	dir := t.TempDir()
	certificate, err := Certificate(dir, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b, _ := io.ReadAll(r.Body)
		_, _ = w.Write(b)
	})}
	go func() { _ = srv.Serve(BothWays(l, certificate)) }() // ends with Close
	defer srv.Close()
	pool := x509.NewCertPool()
	pem, err := os.ReadFile(filepath.Join(dir, CertificateFile))
	if err != nil || !pool.AppendCertsFromPEM(pem) {
		t.Fatal("the certificate's file cannot be used", err)
	}
	silent, err := net.Dial("tcp", l.Addr().String()) // says nothing and must keep nobody waiting
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	client := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	body := strings.Repeat("x", 1<<20)
	for _, scheme := range []string{"http", "https"} {
		for range 2 { // the second request comes on the same connection
			resp, err := client.Post(scheme+"://"+l.Addr().String(), "text/plain", strings.NewReader(body))
			if err != nil {
				t.Fatalf("%s: %v", scheme, err)
			}
			if b, err := io.ReadAll(resp.Body); err != nil || string(b) != body {
				t.Errorf("%s: %d bytes came back, %v", scheme, len(b), err)
			}
			_ = resp.Body.Close()
		}
	}
	stranger := &http.Client{Timeout: patience, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: x509.NewCertPool()}}}
	if _, err := stranger.Get("https://" + l.Addr().String()); err == nil {
		t.Error("who does not know the certificate trusts it")
	}
}
