package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/version"
	"sigs.k8s.io/yaml"
)

// programVersion is set by the release build; otherwise the module's own version is used.
var programVersion = ""

func buildVersion() string {
	if programVersion != "" {
		return programVersion
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" && info.Main.Version != "(devel)" {
		return info.Main.Version
	}
	return "devel"
}

// versions are those of both ends.
type versions struct {
	Client string        `json:"clientVersion"`
	Server *version.Info `json:"serverVersion,omitempty"`
}

func versionCommand(conn *connection) *cobra.Command {
	var clientOnly bool
	var format string
	c := &cobra.Command{
		Use:   "version",
		Short: "Print the version of rigctl and of the running daemon",
		Args:  cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v := versions{Client: buildVersion()}
			var err error
			if !clientOnly {
				v.Server, err = conn.serverVersion(c)
			}
			if perr := conn.printVersions(c, v, format); perr != nil {
				return perr
			}
			return err // the client's version is worth printing without a server
		},
	}
	c.Flags().BoolVar(&clientOnly, "client", false, "do not ask the daemon")
	c.Flags().StringVarP(&format, "output", "o", "", "json or yaml")
	return c
}

func (c *connection) serverVersion(cmd *cobra.Command) (*version.Info, error) {
	if err := c.reachable(cmd.Context()); err != nil {
		return nil, err
	}
	d, err := c.ToDiscoveryClient()
	if err != nil {
		return nil, err
	}
	return d.ServerVersion()
}

func (c *connection) printVersions(cmd *cobra.Command, v versions, format string) (err error) {
	var b []byte
	switch format {
	case "":
		b = fmt.Appendf(nil, "rigctl:     %s\n", v.Client)
		if v.Server != nil {
			b = fmt.Appendf(b, "rig-bridge: %s\n", ownVersion(v.Server))
		}
	case "json":
		b, err = json.MarshalIndent(v, "", "  ")
		b = append(b, '\n')
	case "yaml":
		b, err = yaml.Marshal(v)
	default:
		return usage(cmd, "output format %q is not known", format)
	}
	if err != nil {
		return err
	}
	_, err = c.streams.Out.Write(b)
	return err
}

// ownVersion is the daemon's own version; the rest of GitVersion is that of the API it speaks.
func ownVersion(v *version.Info) string {
	if _, own, ok := strings.Cut(v.GitVersion, "+rig-bridge."); ok {
		return own
	}
	return v.GitVersion
}

var notInBuild = regexp.MustCompile(`[^0-9A-Za-z.-]+`)

// asBuild is a version as the daemon tells it, within the limits of a semantic version's build part.
func asBuild(version string) string { return notInBuild.ReplaceAllString(version, "-") }
