package main

import (
	"bufio"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rigbridge/rigbridge/api/atomicfile"
	"github.com/rigbridge/rigbridge/api/v1alpha1"
	"github.com/rigbridge/rigbridge/controllers/tunnel"
)

// Variables that say what the tunnel is, as the client has them.
const (
	tunnelIDVariable = "CONTROL_PLANE_TUNNEL_ID"
	keyVariable      = "CONTROL_PLANE_API_KEY"
	otherKeyVariable = "OPENAI_API_KEY"
)

const tunnelInputHelp = `The first time it needs the tunnel's ID and a key; later ones change what is given and keep the rest:

  CONTROL_PLANE_TUNNEL_ID                   or --tunnel-id
  CONTROL_PLANE_API_KEY or OPENAI_API_KEY   or --api-key-file, which must be yours alone (chmod 600)
  CONTROL_PLANE_BASE_URL                    or --control-plane-url; needed only if it is not OpenAI's usual one

Flags come before the environment, which comes before files with NAME=VALUE lines: those of --env-file, else tunnel.env in
$XDG_CONFIG_HOME/rig-bridge. A key from the environment or such a file is kept in an owner-only file in the state directory.`

// tunnelInput is what a person says about a tunnel.
type tunnelInput struct {
	id, keyFile, address, client string
	envFiles                     []string
	noWatchdog                   bool
	watchdogGiven                bool

	key string // never printed
}

func (in *tunnelInput) flags(c *cobra.Command) {
	c.Flags().StringVar(&in.id, "tunnel-id", "", "the tunnel's ID ("+tunnelIDVariable+")")
	c.Flags().StringVar(&in.keyFile, "api-key-file", "", "file that holds the key and is yours alone ("+keyVariable+" and "+otherKeyVariable+" hold the key itself)")
	c.Flags().StringVar(&in.address, "control-plane-url", "", "address of the control plane ("+tunnel.ControlPlaneVariable+")")
	c.Flags().StringVar(&in.client, "client", "", "the tunnel-client program; otherwise it is looked for in PATH, ~/.local/bin, ~/bin and beside rig-bridge")
	c.Flags().StringArrayVar(&in.envFiles, "env-file", nil, "file with NAME=VALUE lines; may be repeated, the first to give a value counts")
	c.Flags().BoolVar(&in.noWatchdog, "no-watchdog", false, "start the client again only when it has ended")
	c.PreRun = func(c *cobra.Command, _ []string) { in.watchdogGiven = c.Flags().Changed("no-watchdog") }
}

// read gathers what flags leave open, and checks files before anything is changed.
func (in *tunnelInput) read() error {
	files, err := in.envOfFiles()
	if err != nil {
		return err
	}
	value := func(names ...string) string {
		for _, name := range names {
			if v := os.Getenv(name); v != "" {
				return v
			}
		}
		for _, file := range files {
			for _, name := range names {
				if file[name] != "" {
					return file[name]
				}
			}
		}
		return ""
	}
	in.id = cmp.Or(in.id, value(tunnelIDVariable))
	in.address = cmp.Or(in.address, value(tunnel.ControlPlaneVariable))
	if in.keyFile == "" {
		in.key = strings.TrimSpace(value(keyVariable, otherKeyVariable))
		return in.findClient()
	}
	if in.keyFile, err = absolute(in.keyFile); err != nil {
		return err
	}
	if _, err := tunnel.CheckCredential(in.keyFile); err != nil {
		return err
	}
	return in.findClient()
}

// findClient makes sure that there is a client. One that the daemon would not find by itself is named to it.
func (in *tunnelInput) findClient() (err error) {
	self, err := os.Executable()
	if err != nil {
		self = "" // then nothing is looked for beside it
	}
	home := homeOrEmpty()
	if in.client != "" {
		if in.client, err = absolute(in.client); err != nil {
			return err
		}
		_, err = tunnel.Find(in.client, nil)
		return err
	}
	found, err := tunnel.Find("", tunnel.Places(os.Getenv("PATH"), home, self))
	if err == nil && !slices.Contains(tunnel.Places("", home, self), filepath.Dir(found)) {
		in.client = found
	}
	return err
}

// apply puts what was given into a tunnel, and a key into its file.
func (in *tunnelInput) apply(t *v1alpha1.Tunnel, dir string) error {
	t.Spec.TunnelID = cmp.Or(in.id, t.Spec.TunnelID)
	t.Spec.ControlPlaneURL = cmp.Or(in.address, t.Spec.ControlPlaneURL)
	t.Spec.ClientPath = cmp.Or(in.client, t.Spec.ClientPath)
	t.Spec.Credential.File = cmp.Or(in.keyFile, t.Spec.Credential.File)
	if in.watchdogGiven {
		t.Spec.Watchdog.Disabled = in.noWatchdog
	}
	if t.Spec.TunnelID == "" {
		return errors.New("the tunnel's ID is missing: create the tunnel at https://platform.openai.com/settings/organization/tunnels, then set " +
			tunnelIDVariable + " or give --tunnel-id")
	}
	if in.key == "" {
		if t.Spec.Credential.File == "" {
			return errors.New("the key is missing: make one at https://platform.openai.com/settings/organization/api-keys, then set " +
				keyVariable + " or give --api-key-file FILE (chmod 600)")
		}
		return nil
	}
	t.Spec.Credential.File = tunnel.KeyFile(dir, t.Name)
	return keepKey(t.Spec.Credential.File, in.key)
}

// keepKey writes a key into its owner-only file, unless it is there.
func keepKey(file, key string) error {
	if strings.ContainsFunc(key, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return errors.New("the key in the environment has blanks or line breaks in it; give the key alone")
	}
	if had, err := tunnel.CheckCredential(file); err == nil && had == key {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("make the folder of the key: %w", err)
	}
	return atomicfile.Write(file, []byte(key+"\n"), 0o600)
}

// envOfFiles reads the files with variables.
func (in *tunnelInput) envOfFiles() (all []map[string]string, err error) {
	files, given := in.envFiles, true
	if len(files) == 0 {
		dir, err := configHome()
		if err != nil {
			return nil, nil // no home directory, no such file
		}
		files, given = []string{filepath.Join(dir, "rig-bridge", "tunnel.env")}, false
	}
	for _, file := range files {
		env, err := readEnvFile(file)
		if errors.Is(err, fs.ErrNotExist) && !given {
			continue
		}
		if err != nil {
			return nil, err
		}
		all = append(all, env)
	}
	return all, nil
}

// readEnvFile reads NAME=VALUE lines; the value may be quoted, the line may begin with export. A file with a key
// must be the owner's alone.
func readEnvFile(path string) (map[string]string, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("read the variables: %w", err)
	}
	env := map[string]string{}
	lines := bufio.NewScanner(f)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(strings.TrimPrefix(strings.TrimSpace(lines.Text()), "export "))
		if line == "" || line[0] == '#' || line[0] == ';' {
			continue
		}
		name, value, ok := strings.Cut(line, "=")
		if !ok || strings.ContainsAny(name, " \t\"'") {
			return nil, fmt.Errorf("line %d of %s is not NAME=VALUE", n, path)
		}
		env[name] = unquoted(strings.TrimSpace(value))
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("read the variables in %s: %w", path, err)
	}
	if (env[keyVariable] != "" || env[otherKeyVariable] != "") && info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("others can read the key in %s (mode %04o): chmod 600 %s", path, info.Mode().Perm(), path)
	}
	return env, nil
}

func unquoted(value string) string {
	if n := len(value); n >= 2 && (value[0] == '"' || value[0] == '\'') && value[n-1] == value[0] {
		return value[1 : n-1]
	}
	return value
}
