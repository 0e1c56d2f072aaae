package main

import (
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"k8s.io/cli-runtime/pkg/genericiooptions"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	c := command(streams)
	if err := c.Execute(); err != nil {
		report(os.Stderr, err)
		os.Exit(1)
	}
}

func command(streams genericiooptions.IOStreams) *cobra.Command {
	conn := &connection{streams: streams}
	c := &cobra.Command{
		Use:           "rigctl",
		Short:         "Look at and steer a running rig-bridge",
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	c.SetIn(streams.In)
	c.SetOut(streams.Out)
	c.SetErr(streams.ErrOut)
	conn.flags(c)
	c.AddCommand(
		conn.completesTypes(getCommand(conn)), conn.completesTypes(watchCommand(conn)), conn.completesTypes(describeCommand(conn)),
		conn.completesTypes(waitCommand(conn)), conn.completesTypes(deleteCommand(conn)), applyCommand(conn),
		conn.completesNames(logsCommand(conn), "operations", ""), conn.completesNames(cancelCommand(conn), "operations", "status.active=true"), conn.completesNames(closeCommand(conn), "workspaces", ""),
		conn.completesNames(ackCommand(conn), "handoffs", "spec.acknowledged=false"), pruneCommand(conn),
		conn.completesTypes(editCommand(conn)), conn.completesTypes(explainCommand(conn)), statusCommand(conn), inboxCommand(conn), eventsCommand(conn), dashboardCommand(conn), doctorCommand(conn), kubeconfigCommand(conn), versionCommand(conn),
	)
	return c
}

// usage turns a complaint about arguments into one that says where to look.
func usage(c *cobra.Command, format string, args ...any) error {
	return fmt.Errorf("%s; see '%s --help'", fmt.Sprintf(format, args...), c.CommandPath())
}
