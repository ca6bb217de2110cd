//go:build wycheproofmodule

package encryption_test

// This file is never compiled. It keeps the module of the vectors in go.mod, which TestWycheproof reads as files.
import _ "github.com/c2sp/wycheproof"
