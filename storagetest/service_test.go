package storagetest

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/assert"
)

// named is a testing.TB of another name.
type named struct {
	testing.TB
	name string
}

func (n named) Name() string { return n.name }

func TestNamesAreValidAndUnique(t *testing.T) {
	s := newAzuriteService(addresses{})
	table := regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{2,62}$`)
	lower := regexp.MustCompile(`^[a-z0-9]{3,63}$`)
	for _, name := range []string{"TestInsert", "TestInsert/concurrent_writers#01", "Test" + strings.Repeat("Long", 50),
		"TestÜberschrift/日本", "", "日本", "99luft", "/"} {
		seen := map[string]bool{}
		for range 50 {
			tb := named{TB: t, name: name}
			tableName, queueName, containerName := s.TableName(tb), s.QueueName(tb), s.ContainerName(tb)
			if !table.MatchString(tableName) {
				t.Errorf("test %q: table name %q", name, tableName)
			}
			if !lower.MatchString(queueName) || !lower.MatchString(containerName) {
				t.Errorf("test %q: queue name %q, container name %q", name, queueName, containerName)
			}
			for _, n := range []string{tableName, queueName, containerName} {
				// Table names do not differ by case.
				if n = strings.ToLower(n); seen[n] {
					t.Errorf("test %q: %q came twice", name, n)
				}
				seen[strings.ToLower(n)] = true
			}
		}
	}
	if got := s.TableName(named{TB: t, name: "TestInsert/concurrent_writers"}); !strings.HasPrefix(got, "TestInsertconcurrentwriters") {
		t.Errorf("%q does not show the test's name", got)
	}
}

func TestConnectionStrings(t *testing.T) {
	const local = "http://127.0.0.1:1000"
	for _, c := range []struct{ in, account, table, queue, blob string }{
		{"AccountName=contoso;AccountKey=a2V5;", "contoso", "https://contoso.table.core.windows.net",
			"https://contoso.queue.core.windows.net", "https://contoso.blob.core.windows.net"},
		{"DefaultEndpointsProtocol=http;AccountName=c;AccountKey=a2V5PQ==;EndpointSuffix=core.chinacloudapi.cn", "c",
			"http://c.table.core.chinacloudapi.cn", "http://c.queue.core.chinacloudapi.cn", "http://c.blob.core.chinacloudapi.cn"},
		{"TableEndpoint=https://t.example/;SharedAccessSignature=sv=1&sig=x", "", "https://t.example", "", ""},
		{"UseDevelopmentStorage=true", azuriteAccount, local + "2/" + azuriteAccount, local + "1/" + azuriteAccount, local + "0/" + azuriteAccount},
	} {
		s, err := newAccountService(c.in)
		if err != nil {
			t.Errorf("%s: %v", c.in, err)
			continue
		}
		if s.AccountName != c.account || s.TableEndpoint != c.table || s.QueueEndpoint != c.queue || s.BlobEndpoint != c.blob {
			t.Errorf("%s: %+v", c.in, *s)
		}
		if !s.keep {
			t.Errorf("%s: not taken for an account that outlives the tests", c.in)
		}
	}
}

func TestConnectionStringErrorsHoldNoSecret(t *testing.T) {
	for in, want := range map[string]string{
		"c2VjcmV0":                                 "no '='",
		"AccountName=contoso;AccountKey=":          "AccountKey",
		"AccountKey=c2VjcmV0":                      "AccountName",
		"SharedAccessSignature=sig=c2VjcmV0":       "TableEndpoint",
		"AccountName=contoso;AccountKeyc2VjcmV0==": "AccountKey",
	} {
		_, err := newAccountService(in)
		if err == nil {
			t.Errorf("%s: no error", in)
			continue
		}
		if !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "c2VjcmV0") {
			t.Errorf("%s: error %q", in, err)
		}
	}
}

func TestPrintingAServiceShowsNoSecret(t *testing.T) {
	s := assert.Must[*Service](t)(newAccountService("AccountName=contoso;AccountKey=c2VjcmV0"))
	for _, format := range []string{"%v", "%+v", "%#v", "%s"} {
		if got := fmt.Sprintf(format, s); strings.Contains(got, "c2VjcmV0") || !strings.Contains(got, "contoso.table") {
			t.Errorf("%s prints %q", format, got)
		}
	}
}
