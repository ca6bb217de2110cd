package storagetest

import (
	_ "embed"

	"github.com/tablepatterns/tablepatterns/internal/npm"
)

//go:embed azurite/package.json
var packageJSON []byte

//go:embed azurite/package-lock.json
var packageLock []byte

// azuriteEntry is the file that starts Azurite, inside an installation.
const azuriteEntry = "node_modules/azurite/dist/src/azurite.js"

// azurite is the pinned version.
var azurite = npm.Packages{Name: "Azurite", Dir: "azurite", Manifest: packageJSON, Lock: packageLock, Entry: azuriteEntry, Cost: "about 15 s",
	WithoutTools: "install Node.js 20 or newer with npm, or set " + ConnectionStringVariable + " to the connection string of an account to test on"}
