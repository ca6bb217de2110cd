package accounts

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/simulator/probe"
)

// Transact sends parts as one transaction.
func (a Account) Transact(parts ...string) Reply {
	a.T.Helper()
	return a.Send(http.MethodPost, "/$batch", probe.Batch(strings.Join(parts, "")), "Content-Type", "multipart/mixed; boundary=b")
}

// Code returns status and error code of a response.
func (r Reply) Code(t testing.TB) string {
	t.Helper()
	if r.Text == "" {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Fatal(err)
		}
		r.Text = string(body)
	}
	m := regexp.MustCompile(`"code":"(\w+)"`).FindStringSubmatch(r.Text)
	return fmt.Sprint(r.StatusCode, " ", append(m, "", "")[1])
}

// Fill inserts partitions times rows entities, in transactions of 100.
func Fill(a Account, partitions, rows int) {
	a.T.Helper()
	for i := range partitions {
		for first := 0; first < rows; first += 100 {
			var parts []string
			for j := first; j < min(first+100, rows); j++ {
				parts = append(parts, probe.Part("PUT", fmt.Sprintf("(PartitionKey='p%03d',RowKey='r%06d')", i, j), "{}"))
			}
			if r := a.Transact(parts...); strings.Contains(r.Text, "odata.error") {
				a.T.Fatal(Clip(r.Text))
			}
		}
	}
}

// Walk reads all pages of a query and returns the keys, page by page. It fails the test if the pages do not end.
func (a Account) Walk(target string) (pages [][]string) {
	a.T.Helper()
	key := regexp.MustCompile(`"PartitionKey":"([^"]*)","RowKey":"([^"]*)"`)
	more := ""
	for range 100000 {
		r := a.Want(http.MethodGet, target+more, "", 200, "")
		var keys []string
		for _, m := range key.FindAllStringSubmatch(r.Text, -1) {
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
	a.T.Fatal("the pages do not end")
	return nil
}

// Sizes returns the number of keys of each page.
func Sizes(pages [][]string) (n []int) {
	for _, p := range pages {
		n = append(n, len(p))
	}
	return n
}
