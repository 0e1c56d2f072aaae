package server

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rigbridge/rigbridge/api/atomicfile"
)

// certificateAge is how long a certificate is valid; it is made anew at a start in its last tenth.
const certificateAge = 10 * 365 * 24 * time.Hour

// CertificateFile is the name of the certificate in the state directory; kubeconfig files embed it.
const CertificateFile = "tls.crt"

// Certificate returns the daemon's own self-signed certificate for loopback, made at the first start. kubectl
// sends its bearer over TLS only (client-go, tools/clientcmd), so the port speaks TLS beside plain HTTP.
func Certificate(dir string, now time.Time) (tls.Certificate, error) {
	certFile, keyFile := filepath.Join(dir, CertificateFile), filepath.Join(dir, "tls.key")
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err == nil && now.Before(pair.Leaf.NotAfter.Add(-certificateAge/10)) {
		return pair, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return pair, fmt.Errorf("the certificate in %s cannot be used; remove %s and tls.key to have a new one made: %w", dir, CertificateFile, err)
	}
	cert, key, err := selfSigned(now)
	if err != nil {
		return pair, fmt.Errorf("make a certificate: %w", err)
	}
	if err := writePair(certFile, keyFile, cert, key); err != nil {
		return pair, fmt.Errorf("write the certificate: %w", err)
	}
	return tls.X509KeyPair(cert, key)
}

// writePair replaces both files. Wherever it is cut off, there is no certificate that does not fit the key.
func writePair(certFile, keyFile string, cert, key []byte) error {
	if err := os.Remove(certFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := atomicfile.Write(keyFile, key, 0o600); err != nil {
		return err
	}
	return atomicfile.Write(certFile, cert, 0o600)
}

func selfSigned(now time.Time) (cert, key []byte, err error) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, nil, err
	}
	template := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "rig-bridge"},
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateAge),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		BasicConstraintsValid: true, IsCA: true,
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	encoded, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		return nil, nil, err
	}
	cert = pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	return cert, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded}), nil
}

// BothWays returns a listener whose connections speak TLS if their first byte begins a TLS handshake, and are
// plain otherwise.
func BothWays(l net.Listener, certificate tls.Certificate) net.Listener {
	return &bothWays{Listener: l, config: &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}}}
}

type bothWays struct {
	net.Listener
	config *tls.Config
}

// Accept never waits for a connection's first byte: that is its reader's to do, under its own deadline.
func (b *bothWays) Accept() (net.Conn, error) {
	c, err := b.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return &sniffed{Conn: c, config: b.config}, nil
}

// sniffed decides at its first read what it speaks.
type sniffed struct {
	net.Conn
	config *tls.Config

	once sync.Once
	err  error
	in   io.Reader
	out  io.Writer
}

// tlsHandshake is the first byte of a TLS record that begins a handshake (RFC 8446, section 5.1).
const tlsHandshake = 0x16

func (s *sniffed) decide() {
	first := make([]byte, 1)
	if _, s.err = io.ReadFull(s.Conn, first); s.err != nil {
		return
	}
	s.in, s.out = io.MultiReader(bytes.NewReader(first), s.Conn), s.Conn
	if first[0] == tlsHandshake {
		secure := tls.Server(readFrom{s.Conn, s.in}, s.config)
		s.in, s.out = secure, secure
	}
}

// Read reads what the peer said, decrypted.
func (s *sniffed) Read(p []byte) (int, error) {
	s.once.Do(s.decide)
	if s.err != nil {
		return 0, s.err
	}
	return s.in.Read(p)
}

// Write writes to the peer, encrypted if the peer began so. A server reads before it writes.
func (s *sniffed) Write(p []byte) (int, error) {
	s.once.Do(s.decide)
	if s.err != nil {
		return 0, s.err
	}
	return s.out.Write(p)
}

// CloseWrite says that nothing more is written and lets the peer read the rest; net/http asks for it when it
// refuses a request.
func (s *sniffed) CloseWrite() error {
	s.once.Do(s.decide)
	if half, ok := s.out.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return s.Conn.Close()
}

// readFrom is a connection whose first byte has been read already.
type readFrom struct {
	net.Conn
	in io.Reader
}

func (r readFrom) Read(p []byte) (int, error) { return r.in.Read(p) }
