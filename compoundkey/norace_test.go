//go:build !race

package compoundkey

const raceDivisor = 1
