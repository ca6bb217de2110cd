package storagetest

import (
	"crypto/rand"
	"encoding/hex"
	"strings"
	"testing"
)

// maxName limits the names that this package makes. Tables, queues and containers allow 63 characters; the
// remaining characters are for derived names, such as the name of a poison queue.
const maxName = 50

// TableName returns a table name that begins with the test's name. It has at most 50 letters and digits, and
// no other call returns it, in this process or another. The table is not created. On an account of
// AZURE_STORAGE_CONNECTION_STRING, a table of this name is deleted when the test ends.
func (s *Service) TableName(t testing.TB) string {
	t.Helper()
	name := uniqueName(t.Name())
	s.deleteAtEnd(t, deleteTable, name)
	return name
}

// QueueName returns a name for a queue, as [Service.TableName] does for a table, in lower case as queues require.
func (s *Service) QueueName(t testing.TB) string {
	t.Helper()
	name := strings.ToLower(uniqueName(t.Name()))
	s.deleteAtEnd(t, deleteQueue, name)
	return name
}

// ContainerName returns a name for a blob container, as [Service.TableName] does for a table, in lower case as containers require.
func (s *Service) ContainerName(t testing.TB) string {
	t.Helper()
	name := strings.ToLower(uniqueName(t.Name()))
	s.deleteAtEnd(t, deleteContainer, name)
	return name
}

// uniqueName joins the letters and digits of name, cut to fit, and 64 random bits. It does not use a counter,
// because two test binaries can share an account, and the name of a deleted table stays taken for a while.
func uniqueName(name string) string {
	var random [8]byte
	rand.Read(random[:]) // never returns an error: it ends the program instead
	suffix := hex.EncodeToString(random[:])

	b := make([]byte, 0, maxName)
	for _, c := range []byte(name) {
		letter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if len(b) == 0 && !letter {
			b = append(b, 'T') // a table's name starts with a letter
		}
		if letter || '0' <= c && c <= '9' {
			b = append(b, c)
		}
		if len(b) == maxName-len(suffix) {
			break
		}
	}
	if len(b) == 0 {
		b = append(b, 'T')
	}
	return string(b) + suffix
}
