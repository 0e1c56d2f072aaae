package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/spf13/cobra"
	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/cli-runtime/pkg/resource"
	"sigs.k8s.io/yaml"
)

func editCommand(conn *connection) *cobra.Command {
	return &cobra.Command{
		Use:   "edit (TYPE NAME | TYPE/NAME)",
		Short: "Change an object in your editor (EDITOR, else vi)",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(c *cobra.Command, args []string) error {
			if err := conn.reachable(c.Context()); err != nil {
				return err
			}
			infos, err := conn.builder().ResourceTypeOrNameArgs(false, args...).Flatten().Do().Infos()
			if err != nil {
				return err
			}
			for _, info := range infos {
				if err := conn.edit(c.Context(), info); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// edit shows an object in the editor and sends what was changed, unless somebody else changed the object's intent
// in the meantime. What was written is kept if it cannot be sent.
func (c *connection) edit(ctx context.Context, info *resource.Info) error {
	shown := asUnstructured(info.Object).DeepCopy()
	shown.SetManagedFields(nil)
	before, err := yaml.Marshal(shown.Object)
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rigctl-edit-")
	if err != nil {
		return fmt.Errorf("make a file to edit: %w", err)
	}
	file := filepath.Join(dir, info.Name+".yaml")
	if err := os.WriteFile(file, before, 0o600); err != nil {
		return fmt.Errorf("make a file to edit: %w", err)
	}
	after, err := c.inEditor(ctx, file)
	if err == nil && !bytes.Equal(before, after) {
		err = send(info, shown, before, after)
		if err == nil {
			fmt.Fprintf(c.streams.Out, "%s edited\n", title(info))
		}
	} else if err == nil {
		fmt.Fprintln(c.streams.ErrOut, "Edit cancelled, no changes made.")
	}
	if err != nil {
		fmt.Fprintf(c.streams.ErrOut, "What you wrote is kept in %s\n", file)
		return err
	}
	return os.RemoveAll(dir)
}

func (c *connection) inEditor(ctx context.Context, file string) ([]byte, error) {
	editor := os.Getenv("KUBE_EDITOR")
	if editor == "" {
		editor = os.Getenv("EDITOR")
	}
	if editor == "" {
		editor = "vi"
	}
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$1"`, "editor", file) // EDITOR may have arguments
	cmd.Stdin, cmd.Stdout, cmd.Stderr = c.streams.In, c.streams.Out, c.streams.ErrOut
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("the editor %q: %w", editor, err)
	}
	return os.ReadFile(file)
}

func send(info *resource.Info, shown *unstructured.Unstructured, before, after []byte) error {
	old, err := yaml.YAMLToJSON(before)
	if err != nil {
		return err
	}
	changed, err := yaml.YAMLToJSONStrict(after)
	if err != nil {
		return fmt.Errorf("what you wrote is not YAML: %w", err)
	}
	var u unstructured.Unstructured
	if err := u.UnmarshalJSON(changed); err != nil {
		return fmt.Errorf("what you wrote is not an object: %w", err)
	}
	if u.GetName() != shown.GetName() || u.GroupVersionKind() != shown.GroupVersionKind() {
		return errors.New("an edit cannot change an object's name or kind")
	}
	patch, err := jsonpatch.CreateMergePatch(old, changed)
	if err != nil {
		return fmt.Errorf("find what changed: %w", err)
	}
	return patchUnlessChanged(info, shown, patch)
}

// patchUnlessChanged sends a patch that holds only for what was shown. A status that changed meanwhile, as it does
// all the time, is no reason to refuse.
func patchUnlessChanged(info *resource.Info, shown *unstructured.Unstructured, patch []byte) error {
	helper := resource.NewHelper(info.Client, info.Mapping).WithFieldManager("rigctl-edit")
	latest := shown
	for {
		exact, err := withVersion(patch, latest.GetResourceVersion())
		if err != nil {
			return err
		}
		_, err = helper.Patch(info.Namespace, info.Name, types.MergePatchType, exact, nil)
		if !apierrors.IsConflict(err) {
			return err
		}
		got, gerr := helper.Get(info.Namespace, info.Name)
		if gerr != nil {
			return gerr
		}
		if latest = asUnstructured(got); latest.GetUID() != shown.GetUID() || latest.GetGeneration() != shown.GetGeneration() ||
			!maps.Equal(latest.GetLabels(), shown.GetLabels()) || !maps.Equal(latest.GetAnnotations(), shown.GetAnnotations()) {
			return err
		}
	}
}

// withVersion makes a patch hold only for the version that it was made from.
func withVersion(patch []byte, resourceVersion string) ([]byte, error) {
	return jsonpatch.MergePatch(patch, fmt.Appendf(nil, `{"metadata":{"resourceVersion":%q}}`, resourceVersion))
}
