package main

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"
)

func dashboardCommand(conn *connection) *cobra.Command {
	var fragment string
	var printOnly, revoke bool
	c := &cobra.Command{
		Use:   "dashboard",
		Short: "Print a link that opens the dashboard, and open it on a desktop",
		Long: "Print a link that logs a browser in to the dashboard, and open it if this is a desktop. The link works once\n" +
			"and for a minute; the login lasts as long as it is used once in 30 days.",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if revoke {
				if err := conn.ask(c.Context(), http.MethodPost, "/api/logout-all", struct{}{}, nil); err != nil {
					return err
				}
				fmt.Fprintln(conn.streams.ErrOut, "Every browser is logged out.")
				return nil
			}
			var link struct {
				URL string `json:"url"`
			}
			if err := conn.ask(c.Context(), http.MethodPost, "/api/login-link", map[string]string{"fragment": fragment}, &link); err != nil {
				return err
			}
			fmt.Fprintln(conn.streams.Out, link.URL)
			if opener := desktopOpener(); opener != "" && !printOnly {
				if err := exec.CommandContext(c.Context(), opener, link.URL).Run(); err != nil {
					fmt.Fprintf(conn.streams.ErrOut, "%s could not open it; open the link above in a browser.\n", opener)
				}
			}
			return nil
		},
	}
	c.Flags().StringVar(&fragment, "show", "", "what to show: thread=ID, project=ID, operation=NAME or handoff=ID")
	c.Flags().BoolVar(&printOnly, "print", false, "only print the link")
	c.Flags().BoolVar(&revoke, "revoke", false, "log every browser out instead")
	c.MarkFlagsMutuallyExclusive("revoke", "print")
	c.MarkFlagsMutuallyExclusive("revoke", "show")
	return c
}

// desktopOpener is the program that opens a link in the person's browser, or empty where there is no desktop.
func desktopOpener() string {
	name := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		name = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return ""
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}
