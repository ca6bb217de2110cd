// Package mermaid parses diagrams with mermaid, the JavaScript program by which GitHub draws them, in tests of the documentation. The package
// @mermaid-js/tiny is mermaid in one file without dependencies. It is pinned in package.json and package-lock.json, and installed once into
// the user's cache directory, as storagetest installs Azurite.
package mermaid

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tablepatterns/tablepatterns/internal/npm"
)

var (
	//go:embed package.json
	manifest []byte
	//go:embed package-lock.json
	lock []byte
	//go:embed parse.js
	script string
)

// entry is the file that holds all of mermaid.
const entry = "node_modules/@mermaid-js/tiny/dist/mermaid.tiny.js"

var packages = npm.Packages{Name: "mermaid", Dir: "mermaid", Manifest: manifest, Lock: lock, Entry: entry, Cost: "about 2 s",
	WithoutTools: "install Node.js 20 or newer with npm"}

// parseTime limits one call of Parse, without the installation.
const parseTime = time.Minute

// Parse returns the parse error of each diagram, in the order of diagrams; "" for a diagram that mermaid
// parses. It starts one process of Node.js for all of them. Parse does not draw, so it finds no label that
// overlaps another. It returns an error if Node.js or npm is missing or the installation fails.
func Parse(ctx context.Context, diagrams []string, progress func(string)) ([]string, error) {
	node, err := packages.Node()
	if err != nil {
		return nil, err
	}
	dir, err := packages.Install(ctx, progress)
	if err != nil {
		return nil, err
	}
	input, err := json.Marshal(diagrams)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, parseTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "-e", script, filepath.Join(dir, filepath.FromSlash(entry)))
	cmd.Stdin = bytes.NewReader(input)
	var output, failures bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &failures
	if err := cmd.Run(); err != nil {
		return nil, fmt.Errorf("mermaid ended with an error: %w: %.2000s", errors.Join(err, ctx.Err()), failures.String())
	}
	var problems []string
	if err := json.Unmarshal(output.Bytes(), &problems); err != nil {
		return nil, fmt.Errorf("mermaid printed %.200q: %w", output.String(), err)
	}
	if len(problems) != len(diagrams) {
		return nil, fmt.Errorf("mermaid answered for %d of %d diagrams", len(problems), len(diagrams))
	}
	return problems, nil
}
