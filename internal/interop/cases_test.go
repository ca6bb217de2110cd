package interop

import (
	"encoding/base64"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tablepatterns/tablepatterns/internal/leaks"
)

func TestMain(m *testing.M) { leaks.Main(m) }

// value is a property value as the clients exchange it in these tests: a type of the service and a text.
type value struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// row is a row of the tests.
type row struct {
	Partition  string           `json:"partition"`
	Row        string           `json:"row"`
	Properties map[string]value `json:"properties"`
}

// extremes are values of every type at the limits of the service, by the name of their property.
func extremes() map[string]value {
	all := map[string]value{
		"True": {"Boolean", "true"}, "False": {"Boolean", "false"},
		"Guid": {"Guid", "0cbf2f5e-9002-4043-bc4b-4ab8f40000ff"}, "GuidZero": {"Guid", "00000000-0000-0000-0000-000000000000"}, "GuidMax": {"Guid", "ffffffff-ffff-ffff-ffff-ffffffffffff"},
		"GuidUpper":   {"Guid", "0CBF2F5E-9002-4043-BC4B-4AB8F40000FF"},
		"BinaryEmpty": {"Binary", ""}, "BinaryZero": {"Binary", "AA=="}, "BinaryFull": {"Binary", base64.StdEncoding.EncodeToString([]byte(strings.Repeat("\x00\xff", 1<<15)))},
	}
	for _, n := range []int64{0, 1, -1, math.MaxInt32, math.MinInt32} {
		all[name("Int32", len(all))] = value{"Int32", fmt.Sprint(n)}
	}
	for _, n := range []int64{0, 1, -1, math.MaxInt32 + 1, 1<<53 - 1, 1 << 53, 1<<53 + 1, -(1<<53 + 1), math.MaxInt64, math.MinInt64} {
		all[name("Int64", len(all))] = value{"Int64", fmt.Sprint(n)}
	}
	for _, text := range []string{"0", "1", "-1", "3", "100", "1e+21", "0.1", "5e-324", "-5e-324", "2.2250738585072014e-308", "1.7976931348623157e+308", "-1.7976931348623157e+308",
		"123456789.12345679", "1e-7", "9007199254740993", "NaN", "Infinity", "-Infinity"} {
		all[name("Double", len(all))] = value{"Double", text}
	}
	for _, text := range []string{"1601-01-01T00:00:00Z", "9999-12-31T23:59:59.9999999Z", "2024-02-29T12:00:00Z", "2026-11-23T12:34:56.1Z", "2026-11-23T12:34:56.12Z", "2026-11-23T12:34:56.123Z",
		"2026-11-23T12:34:56.1234Z", "2026-11-23T12:34:56.12345Z", "2026-11-23T12:34:56.123456Z", "2026-11-23T12:34:56.1234567Z", "1969-12-31T23:59:59.9999999Z"} {
		all[name("DateTime", len(all))] = value{"DateTime", text}
	}
	for _, text := range []string{"", " ", "  two  ", "O'Brien", `"quoted"`, `back\slash`, "50%25", "a+b&c=d", "<xml>&amp;</xml>", "é", "e\u0301", "ﬃ", "日本語", "😀👨‍👩‍👧", "\U0010FFFF", "\uFFFD", "\uFFFC\uFFFE",
		"tab\tline\ncr\rcrlf\r\n", "\u0001\u001f\u007f\u0080\u009f", "\u200b\u202e\ufeff", "2026-11-23T12:34:56Z", "0cbf2f5e-9002-4043-bc4b-4ab8f40000ff", "null", "true", "1", "NaN",
		strings.Repeat("x", 1<<15), strings.Repeat("é", 1<<15), strings.Repeat("😀", 1<<14)} {
		all[name("String", len(all))] = value{"String", text}
	}
	return all
}

func name(kind string, n int) string { return fmt.Sprintf("%s%03d", kind, n) }

// keys are row keys that clients have to escape in addresses, in JSON or in filters.
func keys() []string {
	all := []string{"", " ", "  ", "a b", " lead", "trail ", "%", "%25", "%2F", "%2f", "%23", "50%25", "%zz", "%u0041", "+", "a+b", "%2B", "&", "a&b=c", "=", "==", "'", "''", "O'Brien", "'''", `"`, `""`, `"a"`,
		"(", ")", "(PartitionKey='a',RowKey='b')", ",", ";", ":", "a:b", "@", "$", "$batch", "$filter=x", "!", "*", "~", "`", "^", "|", "{", "}", "{0}", "[", "]", "<", ">", "<a>", "-", "_", ".", "..", "...", "a.", "a..",
		"é", "e\u0301", "ß", "日本語", "😀", "\U0010FFFF", "\uFFFD", "\uFFFC", "\u200b", "\u202e", "\ufeff", "null", "undefined", "constructor", "__proto__", "0", "-0", "1e3", "true",
		strings.Repeat("x", 512), strings.Repeat("é", 512), strings.Repeat("😀", 256)}
	return all
}

// names are names of properties that are identifiers and nevertheless hard.
func names() []string {
	return []string{"a", "A", "aA", "Aa", "_", "_x", "__x", "x_", "x1", "é", "ß", "Ünïcödé", "Ω", "имя", "名前", "이름", "اسم", "שם", "ﬁ", "ª", "Ǆ", "odata", "odata_type", "value", "Value", "metadata", "type", "etag", "timestampX",
		"length", "name", "toString", "hasOwnProperty", "constructor", "valueOf", "null", "true", "class", "function", "partitionKeyX", strings.Repeat("n", 255), strings.Repeat("é", 255)}
}
