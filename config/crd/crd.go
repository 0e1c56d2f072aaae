// Package crd embeds the generated CustomResourceDefinitions, the one place where columns, short names and
// categories of the kinds are stated.
package crd

import (
	"embed"
	"fmt"
	"strings"
	"sync"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

//go:embed bases/*.yaml
var bases embed.FS

// definitions are those that have been read, by plural name: a function that reads each once.
var definitions sync.Map

// Load returns the definition of a resource by its plural name. It is read once, and must not be changed.
func Load(plural string) (*apiextensionsv1.CustomResourceDefinition, error) {
	one, _ := definitions.LoadOrStore(plural, sync.OnceValues(func() (*apiextensionsv1.CustomResourceDefinition, error) { return read(plural) }))
	return one.(func() (*apiextensionsv1.CustomResourceDefinition, error))()
}

func read(plural string) (*apiextensionsv1.CustomResourceDefinition, error) {
	b, err := bases.ReadFile("bases/rigbridge.dev_" + plural + ".yaml")
	if err != nil {
		return nil, fmt.Errorf("no definition of %s: %w", plural, err)
	}
	crd := &apiextensionsv1.CustomResourceDefinition{}
	if err := yaml.UnmarshalStrict(b, crd); err != nil {
		return nil, fmt.Errorf("definition of %s: %w", plural, err)
	}
	return crd, nil
}

// All returns the definitions of all resources. They must not be changed.
func All() (all []*apiextensionsv1.CustomResourceDefinition, err error) {
	entries, err := bases.ReadDir("bases")
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		_, plural, _ := strings.Cut(strings.TrimSuffix(e.Name(), ".yaml"), "_")
		one, err := Load(plural)
		if err != nil {
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}
