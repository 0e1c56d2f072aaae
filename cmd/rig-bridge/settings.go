package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"
)

// defaultPort is where clients look for the daemon.
const defaultPort = 8767

// settings are what can be chosen: by flags, else by the environment, else by config.yaml, else the defaults.
type settings struct {
	// Port is the TCP port on 127.0.0.1; 0 takes any free one.
	Port int `json:"port"`
	// StateDir is the owner-only directory of everything that is kept.
	StateDir string `json:"stateDir"`
	// TokenFile is the file of the bearer; empty means StateDir/http-token.
	TokenFile string `json:"tokenFile"`
	// LogLevel is info or debug.
	LogLevel string `json:"logLevel"`

	idleExit      time.Duration
	explicitToken bool
	syncStore     func(*os.File) error // for tests; nil brings the store's files to the disk
	now           func() time.Time     // for tests; nil is the system's clock
}

func (s *settings) flags(c *cobra.Command) {
	c.Flags().IntVar(&s.Port, "port", defaultPort, "TCP port on 127.0.0.1; 0 takes any free one (RIG_BRIDGE_PORT)")
	c.Flags().StringVar(&s.StateDir, "state-dir", "", "directory of everything that is kept (RIG_BRIDGE_STATE_DIR; default $XDG_STATE_HOME/rig-bridge, else ~/.local/state/rig-bridge)")
	c.Flags().StringVar(&s.TokenFile, "token-file", "", "file that holds the bearer; must exist if given (RIG_BRIDGE_TOKEN_FILE; default STATE-DIR/http-token, made at first start)")
	c.Flags().StringVar(&s.LogLevel, "log-level", "info", "info or debug (RIG_BRIDGE_LOG_LEVEL)")
}

// complete fills in what no flag gave.
func (s *settings) complete(c *cobra.Command) error {
	given := func(name string) bool { return c.Flags().Changed(name) }
	if !given("state-dir") {
		s.StateDir = os.Getenv("RIG_BRIDGE_STATE_DIR")
	}
	file, err := readConfig(s.StateDir)
	if err != nil {
		return err
	}
	if err := s.completePort(given("port"), file); err != nil {
		return err
	}
	s.explicitToken = true
	if !given("token-file") {
		s.TokenFile = first(os.Getenv("RIG_BRIDGE_TOKEN_FILE"), file.TokenFile)
	}
	if !given("log-level") {
		s.LogLevel = first(os.Getenv("RIG_BRIDGE_LOG_LEVEL"), file.LogLevel, s.LogLevel)
	}
	if s.LogLevel != "info" && s.LogLevel != "debug" {
		return fmt.Errorf("log level %q is not known; use info or debug", s.LogLevel)
	}
	if s.StateDir = first(s.StateDir, file.StateDir); s.StateDir == "" {
		if s.StateDir, err = defaultStateDir(); err != nil {
			return err
		}
	}
	if s.StateDir, err = filepath.Abs(s.StateDir); err != nil {
		return fmt.Errorf("state directory: %w", err)
	}
	if s.TokenFile == "" {
		s.TokenFile, s.explicitToken = filepath.Join(s.StateDir, "http-token"), false
	}
	return nil
}

func (s *settings) completePort(given bool, file settings) error {
	if !given {
		text := first(os.Getenv("RIG_BRIDGE_PORT"), os.Getenv("MCP_PORT"))
		switch {
		case text != "":
			port, err := strconv.Atoi(text)
			if err != nil {
				return fmt.Errorf("port %q in the environment is not a number", text)
			}
			s.Port = port
		case file.Port != 0:
			s.Port = file.Port
		}
	}
	if s.Port < 0 || s.Port > 65535 {
		return fmt.Errorf("port %d is not between 0 and 65535", s.Port)
	}
	return nil
}

// readConfig reads config.yaml of the state directory, else of the account's configuration directory.
func readConfig(stateDir string) (file settings, err error) {
	var dirs []string
	if stateDir != "" {
		dirs = append(dirs, stateDir)
	} else if dir, err := defaultStateDir(); err == nil {
		dirs = append(dirs, dir)
	}
	if dir, err := configHome(); err == nil {
		dirs = append(dirs, filepath.Join(dir, "rig-bridge"))
	}
	for _, dir := range dirs {
		path := filepath.Join(dir, "config.yaml")
		b, err := os.ReadFile(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return file, fmt.Errorf("read the settings: %w", err)
		}
		if err := yaml.UnmarshalStrict(b, &file); err != nil {
			return file, fmt.Errorf("settings in %s are not valid: %w", path, err)
		}
		return file, nil
	}
	return file, nil
}

// defaultStateDir follows the XDG base directory specification; an empty variable counts as unset.
func defaultStateDir() (string, error) {
	if base := os.Getenv("XDG_STATE_HOME"); filepath.IsAbs(base) {
		return filepath.Join(base, "rig-bridge"), nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("no state directory: HOME is not set; give --state-dir")
	}
	return filepath.Join(home, ".local", "state", "rig-bridge"), nil
}

func configHome() (string, error) {
	if base := os.Getenv("XDG_CONFIG_HOME"); filepath.IsAbs(base) {
		return base, nil
	}
	home, err := os.UserHomeDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(home, ".config"), nil
}

func first(texts ...string) string {
	for _, t := range texts {
		if t != "" {
			return t
		}
	}
	return ""
}
