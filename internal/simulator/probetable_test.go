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

// part is one operation on the table Employees; target is what follows the table's name.
func part(method, target, body string, headers ...string) string {
	text := "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + method + " /Employees" + target + " HTTP/1.1\r\n"
	for i := 0; i < len(headers); i += 2 {
		text += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	return text + "Content-Type: application/json\r\n\r\n" + body + "\r\n"
}

func batchBody(parts string) string {
	return "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + parts + "--c--\r\n--b--\r\n"
}

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

// everyType is an entity with properties of every type.
const everyType = `{"PartitionKey":"p","RowKey":"r","Age@odata.type":"Edm.Int64","Age":"39","Sex":"male","Married":true,"Optional":null,` +
	`"Ratio":3.1,"EvenRatio":3.0,"Big":1e300,"Nan@odata.type":"Edm.Double","Nan":"NaN","Inf":"-Infinity","Inf@odata.type":"Edm.Double",` +
	`"Birthday":"1973-10-04T00:00:00.1200000Z","Birthday@odata.type":"Edm.DateTime","Binary@odata.type":"Edm.Binary","Binary":"YmluYXJ5",` +
	`"Other":20,"Clsid@odata.type":"Edm.Guid","Clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","Timestamp":"2001-01-01T00:00:00Z"}`
