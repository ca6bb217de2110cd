package probe

// Part returns one operation of a transaction on the table Employees; target is the part of the URL after the table's name.
func Part(method, target, body string, headers ...string) string {
	text := "--c\r\nContent-Type: application/http\r\nContent-Transfer-Encoding: binary\r\n\r\n" + method + " /Employees" + target + " HTTP/1.1\r\n"
	for i := 0; i < len(headers); i += 2 {
		text += headers[i] + ": " + headers[i+1] + "\r\n"
	}
	return text + "Content-Type: application/json\r\n\r\n" + body + "\r\n"
}

// Batch returns the body of a transaction with these parts; its boundary is b.
func Batch(parts string) string {
	return "--b\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" + parts + "--c--\r\n--b--\r\n"
}

// EveryType is an entity with properties of every type.
const EveryType = `{"PartitionKey":"p","RowKey":"r","Age@odata.type":"Edm.Int64","Age":"39","Sex":"male","Married":true,"Optional":null,` +
	`"Ratio":3.1,"EvenRatio":3.0,"Big":1e300,"Nan@odata.type":"Edm.Double","Nan":"NaN","Inf":"-Infinity","Inf@odata.type":"Edm.Double",` +
	`"Birthday":"1973-10-04T00:00:00.1200000Z","Birthday@odata.type":"Edm.DateTime","Binary@odata.type":"Edm.Binary","Binary":"YmluYXJ5",` +
	`"Other":20,"Clsid@odata.type":"Edm.Guid","Clsid":"c9da6455-213d-42c9-9a79-3e9149a57833","Timestamp":"2001-01-01T00:00:00Z"}`
