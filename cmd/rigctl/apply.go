package main

import (
	"encoding/json"
	"fmt"

	"github.com/spf13/cobra"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
)

// applier brings objects to what files say, by server-side apply.
type applier struct {
	*connection
	files   resource.FilenameOptions
	manager string
	force   bool
	dryRun  string
}

func applyCommand(conn *connection) *cobra.Command {
	a := &applier{connection: conn}
	c := &cobra.Command{
		Use:     "apply -f FILE",
		Short:   "Make or change objects as files say (server-side apply)",
		Example: "  rigctl apply -f config/samples/rigbridge_v1alpha1_tunnel.yaml",
		Args:    cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if len(a.files.Filenames) == 0 {
				return usage(c, "say what to apply with -f")
			}
			if a.dryRun != "none" && a.dryRun != "server" {
				return usage(c, "--dry-run is none or server, not %q", a.dryRun)
			}
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			infos, err := conn.declared().FilenameParam(false, &a.files).Flatten().Do().Infos()
			if err != nil {
				return err
			}
			for _, info := range infos {
				if err := a.apply(info); err != nil {
					return err
				}
			}
			return nil
		},
	}
	c.Flags().StringSliceVarP(&a.files.Filenames, "filename", "f", nil, "file, directory, or - for standard input")
	c.Flags().BoolVarP(&a.files.Recursive, "recursive", "R", false, "directories with all below them")
	c.Flags().StringVar(&a.manager, "field-manager", "rigctl", "who owns the fields")
	c.Flags().BoolVar(&a.force, "force-conflicts", false, "take over fields that others own")
	c.Flags().StringVar(&a.dryRun, "dry-run", "none", "server: only try whether it could be done")
	return c
}

func (a *applier) apply(info *resource.Info) error {
	helper := resource.NewHelper(info.Client, info.Mapping).WithFieldManager(a.manager).WithFieldValidation(metav1.FieldValidationStrict).DryRun(a.dryRun == "server")
	before, err := helper.Get(info.Namespace, info.Name)
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	data, err := json.Marshal(info.Object)
	if err != nil {
		return err
	}
	after, err := helper.Patch(info.Namespace, info.Name, types.ApplyPatchType, data, &metav1.PatchOptions{Force: &a.force})
	if err != nil {
		return err
	}
	note := ""
	if a.dryRun == "server" {
		note = " (server dry run)"
	}
	fmt.Fprintf(a.streams.Out, "%s %s%s\n", title(info), outcome(asUnstructured(before), asUnstructured(after)), note)
	return nil
}

// outcome is the word for what changed; who owns which field does not count.
func outcome(before, after *unstructured.Unstructured) string {
	if before == nil {
		return "created"
	}
	before, after = before.DeepCopy(), after.DeepCopy()
	for _, o := range []*unstructured.Unstructured{before, after} {
		o.SetManagedFields(nil)
		o.SetResourceVersion("")
	}
	if apiequality.Semantic.DeepEqual(before.Object, after.Object) {
		return "unchanged"
	}
	return "configured"
}
