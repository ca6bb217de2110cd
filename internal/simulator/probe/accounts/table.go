package simulator

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// transact sends parts as one transaction.
func (a account) transact(parts ...string) reply {
	a.t.Helper()
	return a.send(http.MethodPost, "/$batch", batchBody(strings.Join(parts, "")), "Content-Type", "multipart/mixed; boundary=b")
}

// code is status and error code of an answer.
func (r reply) code(t testing.TB) string {
	t.Helper()
	if r.text == "" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		r.text = string(body)
	}
	m := regexp.MustCompile(`"code":"(\w+)"`).FindStringSubmatch(r.text)
	return fmt.Sprint(r.StatusCode, " ", append(m, "", "")[1])
}

// fill inserts partitions × rows entities, in transactions of 100.
func fill(a account, partitions, rows int) {
	a.t.Helper()
	for i := range partitions {
		for first := 0; first < rows; first += 100 {
			var parts []string
			for j := first; j < min(first+100, rows); j++ {
				parts = append(parts, part("PUT", fmt.Sprintf("(PartitionKey='p%03d',RowKey='r%06d')", i, j), "{}"))
			}
			if r := a.transact(parts...); strings.Contains(r.text, "odata.error") {
				a.t.Fatal(clip(r.text))
			}
		}
	}
}

// walk reads all pages of a query; it returns the keys, page by page. Pages that come without end are an error.
func (a account) walk(target string) (pages [][]string) {
	a.t.Helper()
	key := regexp.MustCompile(`"PartitionKey":"([^"]*)","RowKey":"([^"]*)"`)
	more := ""
	for range 100000 {
		r := a.want(http.MethodGet, target+more, "", 200, "")
		var keys []string
		for _, m := range key.FindAllStringSubmatch(r.text, -1) {
			keys = append(keys, m[1]+"/"+m[2])
		}
		pages = append(pages, keys)
		partition, row := r.Header.Get("x-ms-continuation-NextPartitionKey"), r.Header.Get("x-ms-continuation-NextRowKey")
		if partition == "" {
			return pages
		}
		more = "&NextPartitionKey=" + url.QueryEscape(partition)
		if row != "" {
			more += "&NextRowKey=" + url.QueryEscape(row)
		}
	}
	a.t.Fatal("the pages do not end")
	return nil
}

func sizes(pages [][]string) (n []int) {
	for _, p := range pages {
		n = append(n, len(p))
	}
	return n
}
