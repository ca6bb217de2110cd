package conformance

import (
	"fmt"
	"net/url"
	"strings"
)

func tableCases() []script {
	return []script{
		{"a table's life", tableLife},
		{"tables in pages", tablesInPages},
		{"policies of a table", tablePolicies},
		{"bad requests for tables", badTables},
	}
}

func tableLife(w *world) {
	name := w.tableName()
	body := `{"TableName":"` + name + `"}`
	one := "/Tables('" + name + "')"
	w.do(tables, "get before", "404 ResourceNotFound", "GET", one, "")
	w.do(tables, "drop before", "404 ResourceNotFound", "DELETE", one, "")
	w.do(tables, "query before", "404 TableNotFound", "GET", "/"+name+"()", "")
	w.do(tables, "create", "201", "POST", "/Tables", body)
	w.do(tables, "create again", "409 TableAlreadyExists", "POST", "/Tables", body)
	w.do(tables, "create again, no content wanted", "409 TableAlreadyExists", "POST", "/Tables", body, "Prefer", "return-no-content")
	w.do(tables, "get", "200", "GET", one, "")
	w.do(tables, "query", "200", "GET", "/"+name+"()", "")
	w.do(tables, "drop", "204", "DELETE", one, "")
	w.do(tables, "drop again", "404 ResourceNotFound", "DELETE", one, "")
	w.do(tables, "insert after", "404 TableNotFound", "POST", "/"+name, `{"PartitionKey":"p","RowKey":"r"}`)
	for _, prefer := range []string{"return-content", "return-no-content"} {
		other := w.tableName()
		want := map[string]string{"return-content": "201", "return-no-content": "204"}[prefer]
		w.do(tables, prefer, want, "POST", "/Tables", `{"TableName":"`+other+`"}`, "Prefer", prefer)
	}
}

func tablesInPages(w *world) {
	base := w.tableName()
	for i := range 5 {
		w.must(tables, "POST", "/Tables", fmt.Sprintf(`{"TableName":"%s%d"}`, base, i))
		w.Cleanup(func() { w.bye("/Tables('" + fmt.Sprint(base, i) + "')") })
	}
	filter := "/Tables?$filter=" + url.QueryEscape(fmt.Sprintf("TableName ge '%s0' and TableName lt '%s9'", base, base))
	w.do(tables, "all", "200", "GET", filter, "")
	w.do(tables, "none", "200", "GET", "/Tables?$filter="+url.QueryEscape("TableName eq '"+base+"'"), "")
	w.do(tables, "without metadata", "200", "GET", filter, "", "Accept", "application/json;odata=nometadata")
	w.do(tables, "with full metadata", "200", "GET", filter, "", "Accept", "application/json;odata=fullmetadata")
	token := ""
	for page := 1; page == 1 || token != "" && page < 10; page++ {
		r := w.do(tables, fmt.Sprint("page ", page), "200", "GET", filter+"&$top=2"+token, "")
		token = ""
		if next := r.Header.Get("x-ms-continuation-NextTableName"); next != "" {
			token = "&NextTableName=" + url.QueryEscape(next)
		}
	}
}

func tablePolicies(w *world) {
	name := w.newTable()
	acl := "/" + name + "?comp=acl"
	xml := []string{"Content-Type", "application/xml", "Accept", "application/xml"}
	policy := func(id string) string {
		return "<SignedIdentifier><Id>" + id + "</Id><AccessPolicy><Start>2026-01-02T03:04:05.0000000Z</Start>" +
			"<Expiry>2030-01-02T03:04:05.0000000Z</Expiry><Permission>raud</Permission></AccessPolicy></SignedIdentifier>"
	}
	policies := func(ids ...string) string {
		all := ""
		for _, id := range ids {
			all += policy(id)
		}
		return `<?xml version="1.0" encoding="utf-8"?><SignedIdentifiers>` + all + `</SignedIdentifiers>`
	}
	w.do(tables, "none", "200", "GET", acl, "", xml...)
	w.do(tables, "set one", "204", "PUT", acl, policies("readers"), xml...)
	w.do(tables, "get one", "200", "GET", acl, "", xml...)
	w.do(tables, "set five", "204", "PUT", acl, policies("a", "b", "c", "d", "e"), xml...)
	w.do(tables, "set six", "400 InvalidXmlDocument", "PUT", acl, policies("a", "b", "c", "d", "e", "f"), xml...)
	w.do(tables, "get five", "200", "GET", acl, "", xml...)
	w.do(tables, "clear", "204", "PUT", acl, policies(), xml...)
	w.do(tables, "get none", "200", "GET", acl, "", xml...)
	w.do(tables, "no table", "404 TableNotFound", "GET", "/"+name+"x?comp=acl", "", xml...)
	w.do(tables, "set, no table", "404 TableNotFound", "PUT", "/"+name+"x?comp=acl", policies("a"), xml...)
}

func badTables(w *world) {
	name := w.newTable()
	w.do(tables, "no name", "400 PropertiesNeedValue", "POST", "/Tables", `{}`)
	w.do(tables, "no JSON", "400 InvalidInput", "POST", "/Tables", `{"TableName":`)
	w.do(tables, "keys cut off", "400 InvalidInput", "GET", "/"+name+"(PartitionKey='p'", "")
	w.do(tables, "one key", "400 InvalidInput", "GET", "/"+name+"(PartitionKey='p')", "")
	w.do(tables, "another key", "400 InvalidInput", "GET", "/"+name+"(PartitionKey='p',Row='r')", "")
	w.do(tables, "method", "405 MethodNotAllowed", "PUT", "/"+name, `{}`)
	w.do(tables, "answer that is no JSON", "415 MediaTypeNotSupported", "GET", "/"+name+"()", "", "Accept", "text/html")
	w.do(tables, "body that is no JSON", "415 MediaTypeNotSupported", "POST", "/"+name, `<x/>`, "Content-Type", "application/atom+xml")
}

// bye deletes something when a case has ended, whose context has ended too.
func (w *world) bye(path string) {
	ended := *w
	ended.TB = afterwards{w.TB}
	ended.quiet(tables, "DELETE", path, "")
}

// entityPath is the address of an entity: quotes doubled, everything escaped.
func entityPath(table, pk, rk string) string {
	key := func(s string) string { return url.PathEscape(strings.ReplaceAll(s, "'", "''")) }
	return "/" + table + "(PartitionKey='" + key(pk) + "',RowKey='" + key(rk) + "')"
}
