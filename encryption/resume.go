package encryption

import (
	"strconv"
	"strings"

	"github.com/tablepatterns/tablepatterns/tables"
)

// resumePrefix begins a token that also says to which of several partitions the page belongs.
func resumePrefix(partition int) string { return strconv.Itoa(partition) + " " }

func parseResume(text string, partitions []string) (partition int, token string, err error) {
	number, token, found := strings.Cut(text, " ")
	partition, err = strconv.Atoi(number)
	if err != nil || !found || partition < 0 || partition >= len(partitions) {
		return 0, "", tables.Invalidf("Reencrypt", "JobOptions.Resume is not the token of an earlier run with the same Partitions")
	}
	return partition, token, nil
}
