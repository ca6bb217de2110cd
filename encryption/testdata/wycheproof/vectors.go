// Package wycheproof keeps the vectors of project Wycheproof in the requirements of a module of their own, since go mod tidy of a program
// that imports package encryption downloads all that encryption's tests import. TestWycheproof reads the vectors as files.
package wycheproof

import _ "github.com/c2sp/wycheproof"
