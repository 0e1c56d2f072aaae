package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rigbridge/rigbridge/api/atomicfile"
	"github.com/rigbridge/rigbridge/controllers/tunnel"
)

// maxClient bounds a tunnel client, packed or not, in bytes.
const maxClient = 512 << 20

func tunnelInstallCommand() *cobra.Command {
	var sum string
	c := &cobra.Command{
		Use:   "install FILE --sha256 SUM",
		Short: "Install a tunnel-client that you have downloaded, if its checksum is right",
		Long: "Install a tunnel-client that you have downloaded, if its checksum is right, into ~/.local/bin.\n\n" +
			"FILE is the program, or the .zip or .tar.gz that holds it; SUM is the checksum that its provider publishes for FILE\n" +
			"(SHA256SUMS.txt beside the release at https://github.com/openai/tunnel-client/releases). Nothing is downloaded.",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("name one file: rig-bridge tunnel install FILE --sha256 SUM")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			home, err := os.UserHomeDir()
			if err != nil {
				return errors.New("HOME is not set; set it to the account's home directory")
			}
			to := filepath.Join(tunnel.UserBin(home), tunnel.Program)
			if err := installClient(args[0], sum, to); err != nil {
				return err
			}
			fmt.Fprintf(c.OutOrStdout(), "Installed %s\n", to)
			if !slices.Contains(filepath.SplitList(os.Getenv("PATH")), filepath.Dir(to)) {
				fmt.Fprintf(c.OutOrStdout(), "%s is not in your PATH; rig-bridge finds it all the same\n", filepath.Dir(to))
			}
			return nil
		},
	}
	c.Flags().StringVar(&sum, "sha256", "", "the SHA-256 checksum of FILE, 64 hexadecimal digits")
	return c
}

var sumForm = regexp.MustCompile(`^[0-9a-f]{64}$`)

// installClient checks the file and puts the program in it in its place, at once or not at all.
func installClient(file, sum, to string) error {
	sum = strings.ToLower(strings.TrimSpace(sum))
	if !sumForm.MatchString(sum) {
		return errors.New("give the checksum that the provider publishes for the file: --sha256 and 64 hexadecimal digits")
	}
	content, err := readBounded(file)
	if err != nil {
		return err
	}
	// What is installed is what was checked, whoever changes the file meanwhile.
	if got := sha256.Sum256(content); hex.EncodeToString(got[:]) != sum {
		return fmt.Errorf("%s has the checksum %x, not %s: it is not the file that the checksum was published for; nothing was installed", file, got, sum)
	}
	program, err := unpack(content)
	if err != nil {
		return fmt.Errorf("%s: %w; nothing was installed", file, err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return fmt.Errorf("make the folder of programs: %w", err)
	}
	return atomicfile.Write(to, program, 0o755) // one that runs goes on with what it was
}

func readBounded(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, fmt.Errorf("read the tunnel client: %w", err)
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a file", file)
	}
	return readUpTo(f, file)
}

func readUpTo(r io.Reader, what string) ([]byte, error) {
	b, err := io.ReadAll(io.LimitReader(r, maxClient+1))
	if err == nil && len(b) > maxClient {
		err = errors.New("it is too large for a tunnel client")
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", what, err)
	}
	return b, nil
}

// unpack returns the program that the content is or holds.
func unpack(content []byte) ([]byte, error) {
	program, err := content, error(nil)
	switch {
	case bytes.HasPrefix(content, []byte("PK\x03\x04")):
		program, err = fromZip(content)
	case bytes.HasPrefix(content, []byte("\x1f\x8b")):
		program, err = fromTar(content)
	}
	if err != nil {
		return nil, err
	}
	for _, magic := range []string{"\x7fELF", "\xcf\xfa\xed\xfe", "\xca\xfe\xba\xbe", "#!"} { // Linux, macOS, both of macOS's, a script
		if bytes.HasPrefix(program, []byte(magic)) {
			return program, nil
		}
	}
	return nil, errors.New("it is not a program for this computer")
}

var errNoClient = errors.New("there is no " + tunnel.Program + " in it")

// isClient knows the program in an archive; its provider also builds a smaller one, tunnel-client-runtime.
func isClient(name string) bool {
	base := path.Base(name)
	return base == tunnel.Program || base == tunnel.Program+"-runtime"
}

func fromZip(content []byte) ([]byte, error) {
	z, err := zip.NewReader(bytes.NewReader(content), int64(len(content)))
	if err != nil {
		return nil, fmt.Errorf("the archive is damaged: %w", err)
	}
	for _, f := range z.File {
		if !isClient(f.Name) || !f.Mode().IsRegular() {
			continue
		}
		r, err := f.Open()
		if err != nil {
			return nil, fmt.Errorf("the archive is damaged: %w", err)
		}
		defer r.Close()
		return readUpTo(r, f.Name)
	}
	return nil, errNoClient
}

func fromTar(content []byte) ([]byte, error) {
	z, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		return nil, fmt.Errorf("the archive is damaged: %w", err)
	}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil, errNoClient
		}
		if err != nil {
			return nil, fmt.Errorf("the archive is damaged: %w", err)
		}
		if isClient(h.Name) && h.Typeflag == tar.TypeReg {
			return readUpTo(t, h.Name)
		}
	}
}
