package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"
	"k8s.io/client-go/rest"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

func logsCommand(conn *connection) *cobra.Command {
	var follow bool
	var cursor int64
	c := &cobra.Command{
		Use:   "logs OPERATION",
		Short: "Print the output of a command, while the daemon has it in memory",
		Long: "Print the output of a command, while the daemon has it in memory: as long as it runs, and for a while\n" +
			"afterwards. It is never stored; what was too long for an answer is in the file that the operation's\n" +
			"status.fullOutputPath names.",
		Args: cobra.ExactArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			infos, err := conn.named(c.Context(), "operations", args)
			if err != nil {
				return err
			}
			client, err := conn.client(v1alpha1.GroupVersion)
			if err != nil {
				return err
			}
			return conn.logs(c.Context(), client, infos[0].Name, follow, cursor)
		},
	}
	c.Flags().BoolVarP(&follow, "follow", "f", false, "go on until the command is over")
	c.Flags().Int64Var(&cursor, "cursor", 0, "begin after so many bytes")
	return c
}

func (c *connection) logs(ctx context.Context, client rest.Interface, name string, follow bool, cursor int64) error {
	r := client.Get().Namespace(c.namespace).Resource("operations").Name(name).SubResource("log").SetHeader("Accept", "text/plain, */*")
	if follow {
		r.Param("follow", "true")
	}
	if cursor > 0 {
		r.Param("cursor", strconv.FormatInt(cursor, 10))
	}
	body, err := r.Stream(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	if _, err := io.Copy(c.streams.Out, body); err != nil {
		return fmt.Errorf("the output broke off: %w", err)
	}
	return nil
}

// request returns a call's arguments, or nil if the daemon has them no longer.
func (c *connection) request(ctx context.Context, client rest.Interface, name string) map[string]any {
	b, err := client.Get().Namespace(c.namespace).Resource("operations").Name(name).SubResource("request").Do(ctx).Raw()
	if err != nil {
		return nil
	}
	var arguments map[string]any
	if json.Unmarshal(b, &arguments) != nil {
		return nil
	}
	return arguments
}
