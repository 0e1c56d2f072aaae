package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func kubeconfigCommand(conn *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "kubeconfig",
		Short: "Print a kubeconfig with which kubectl reaches the running daemon",
		Long: "Print a kubeconfig with which kubectl and other Kubernetes clients reach the running daemon.\n" +
			"It holds the bearer token: keep it to yourself, for instance\n\n" +
			"  (umask 077; rigctl kubeconfig > ~/.kube/rig)\n  kubectl --kubeconfig ~/.kube/rig get operations",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := conn.reachable(c.Context()); err != nil { // a daemon that was killed leaves its address behind
				return err
			}
			config, err := conn.kubeconfig()
			if err != nil {
				return err
			}
			b, err := clientcmd.Write(*config)
			if err != nil {
				return fmt.Errorf("write the kubeconfig: %w", err)
			}
			_, err = conn.streams.Out.Write(b)
			return err
		},
	}
}

// Names of files in the state directory.
const (
	endpointFile    = "endpoint.json"
	certificateFile = "tls.crt"
)

// endpoint is what the daemon says about itself in its state directory.
type endpoint struct {
	URL       string `json:"url"`
	TokenFile string `json:"tokenFile"`
}

func (c *connection) endpoint() (e endpoint, dir string, err error) {
	dir, given, err := c.stateDir()
	if err != nil {
		return e, dir, err
	}
	b, err := os.ReadFile(filepath.Join(dir, endpointFile))
	if errors.Is(err, fs.ErrNotExist) {
		return e, dir, &notRunningError{dir: dir, given: given}
	}
	if err != nil {
		return e, dir, fmt.Errorf("read where the daemon listens: %w", err)
	}
	if err := json.Unmarshal(b, &e); err != nil {
		return e, dir, fmt.Errorf("endpoint.json in %s is damaged; restart rig-bridge: %w", dir, err)
	}
	return e, dir, nil
}

// kubeconfig describes the running daemon: where it is, how it is known, who asks.
func (c *connection) kubeconfig() (*clientcmdapi.Config, error) {
	e, dir, err := c.endpoint()
	if err != nil {
		return nil, err
	}
	at, err := url.Parse(e.URL)
	if err != nil {
		return nil, fmt.Errorf("the daemon's address %q is not a URL: %w", e.URL, err)
	}
	ca, err := os.ReadFile(filepath.Join(dir, certificateFile))
	if err != nil {
		return nil, fmt.Errorf("read the daemon's certificate: %w", err)
	}
	token, err := os.ReadFile(e.TokenFile)
	if err != nil {
		return nil, fmt.Errorf("read the bearer token: %w", err)
	}
	const name = "rig-bridge"
	config := emptyConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + at.Host, CertificateAuthorityData: ca}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: strings.TrimPrefix(strings.TrimSpace(string(token)), "Bearer ")}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name, Namespace: c.namespace}
	config.CurrentContext = name
	return config, nil
}

func emptyConfig() *clientcmdapi.Config { return clientcmdapi.NewConfig() }
