// Package race tells tests whether the race detector watches them.
package race
