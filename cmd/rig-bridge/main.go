// Command rig-bridge is the daemon that lets an assistant work on this computer.
//
// It is the only place that sees both sides: controllers, which drive what is declared, and mcpserver, which
// declares what an assistant asks for.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rigbridge/rigbridge/cmd/rig-bridge/startgc"
)

// version is set by the release build; otherwise the module's own version is used.
var version = ""

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	if err := command().ExecuteContext(ctx); err != nil {
		fmt.Fprintf(os.Stderr, "rig-bridge: %v\n", err)
		os.Exit(1)
	}
}

func command() *cobra.Command {
	c := &cobra.Command{
		Use:           "rig-bridge",
		Short:         "Let an assistant work on this computer, once and only once",
		SilenceUsage:  true,
		SilenceErrors: true,
		Version:       buildVersion(),
		PersistentPreRun: func(c *cobra.Command, _ []string) {
			if c.Name() != "serve" { // which ends its start itself
				startgc.End(100) // the runtime's own
			}
		},
	}
	c.AddCommand(serveCommand(), stdioCommand(), serviceCommand(), tunnelCommand(), versionCommand())
	return c
}

func versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version of this program",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := fmt.Fprintf(c.OutOrStdout(), "rig-bridge %s %s/%s %s\n", buildVersion(), runtime.GOOS, runtime.GOARCH, runtime.Version())
			return err
		},
	}
}

func buildVersion() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}
