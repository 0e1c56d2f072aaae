package main

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rigbridge/rigbridge/api/v1alpha1"
)

// completionTime bounds how long a shell waits for names.
const completionTime = 2 * time.Second

// pageSize is how many objects are read at once.
const pageSize = 500

// names are what a shell offers; no daemon or a slow one offers nothing.
func (c *connection) names(ctx context.Context, resource, selector string) []string {
	ctx, cancel := context.WithTimeout(ctx, completionTime)
	defer cancel()
	client, err := c.client(v1alpha1.GroupVersion)
	if err != nil {
		return nil
	}
	var l metav1.PartialObjectMetadataList
	o := metav1.ListOptions{FieldSelector: selector, Limit: pageSize}
	got, err := client.Get().Namespace(c.namespace).Resource(resource).VersionedParams(&o, metav1.ParameterCodec).Do(ctx).Raw()
	if err != nil || json.Unmarshal(got, &l) != nil {
		return nil
	}
	var names []string
	for _, item := range l.Items {
		names = append(names, item.Name)
	}
	return names
}

// completesNames offers names of one resource.
func (c *connection) completesNames(cmd *cobra.Command, resource, selector string) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, given []string, _ string) ([]string, cobra.ShellCompDirective) {
		left := slices.DeleteFunc(c.names(cmd.Context(), resource, selector), func(n string) bool { return slices.Contains(given, n) })
		return left, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// completesTypes offers types first, then names of the type.
func (c *connection) completesTypes(cmd *cobra.Command) *cobra.Command {
	cmd.ValidArgsFunction = func(cmd *cobra.Command, given []string, prefix string) ([]string, cobra.ShellCompDirective) {
		if c.reachable(cmd.Context()) != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(given) == 0 {
			return c.types(prefix), cobra.ShellCompDirectiveNoFileComp
		}
		mapping, err := c.mappingFor(given[0])
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return c.names(cmd.Context(), mapping.Resource.Resource, ""), cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// types are the served types by all their names that begin with what was typed.
func (c *connection) types(prefix string) (names []string) {
	d, err := c.ToDiscoveryClient()
	if err != nil {
		return nil
	}
	l, err := d.ServerResourcesForGroupVersion(v1alpha1.GroupVersion.String())
	if err != nil {
		return nil
	}
	for _, r := range l.APIResources {
		if strings.Contains(r.Name, "/") {
			continue
		}
		for _, name := range append([]string{r.Name, r.SingularName}, r.ShortNames...) {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	return names
}
