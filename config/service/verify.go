package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Verify has systemd read a unit and returns what it says against it, empty if nothing. The file bears the unit's
// name. An error that is exec.ErrNotFound says that there is no systemd-analyze.
func Verify(ctx context.Context, file string) (complaints string, err error) {
	cmd := exec.CommandContext(ctx, "systemd-analyze", "--user", "verify", file)
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	if os.Getenv("XDG_RUNTIME_DIR") == "" { // it wants to have one, and writes nothing that stays
		dir, err := os.MkdirTemp("", "rig-bridge-verify-")
		if err != nil {
			return "", fmt.Errorf("verify the unit: %w", err)
		}
		defer os.RemoveAll(dir)
		cmd.Env = append(cmd.Env, "XDG_RUNTIME_DIR="+dir)
	}
	out, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		return "", err
	}
	var ours []string // it reads the account's other units as well and complains about those
	for line := range strings.Lines(string(out)) {
		if strings.Contains(line, filepath.Base(file)) {
			ours = append(ours, strings.TrimSpace(line))
		}
	}
	if len(ours) == 0 && strings.Contains(string(out), "Failed to initialize manager") {
		return "", fmt.Errorf("systemd-analyze: %s", strings.TrimSpace(string(out)))
	}
	return strings.Join(ours, "\n"), nil
}
