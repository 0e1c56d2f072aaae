//go:build tools

package hack

import (
	_ "github.com/bmatcuk/doublestar/v4"
	_ "github.com/charlievieth/fastwalk"
	_ "github.com/dgraph-io/badger/v4"
	_ "github.com/go-logr/zapr"
	_ "github.com/google/uuid"
	_ "github.com/mark3labs/mcp-go/server"
	_ "github.com/santhosh-tekuri/jsonschema/v6"
	_ "go.uber.org/zap"
	_ "golang.org/x/image/draw"
	_ "golang.org/x/sys/unix"
	_ "golang.org/x/text/collate"
	_ "golang.org/x/text/unicode/norm"
	_ "k8s.io/apiserver/pkg/server"
	_ "k8s.io/apiserver/pkg/storage/testing"
	_ "k8s.io/cli-runtime/pkg/genericclioptions"
	_ "k8s.io/client-go/kubernetes"
	_ "pgregory.net/rapid"
	_ "sigs.k8s.io/controller-runtime"
	_ "sigs.k8s.io/yaml"
	_ "github.com/rogpeppe/go-internal/testscript"
	_ "go.yaml.in/yaml/v3"
	_ "github.com/pmezard/go-difflib/difflib"
)
