package encryption

import (
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// resumePrefix tells in which of several partitions a page token is.
func resumePrefix(partition int) string { return strconv.Itoa(partition) + " " }

func parseResume(text string, partitions []string) (partition int, token string, err error) {
	number, token, found := strings.Cut(text, " ")
	partition, err = strconv.Atoi(number)
	if err != nil || !found || partition < 0 || partition >= len(partitions) {
		return 0, "", tables.Invalidf("Reencrypt", "the text to resume by is of another run")
	}
	return partition, token, nil
}
