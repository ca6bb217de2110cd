package entity

import (
	"fmt"
	"net/http"
	"unicode/utf8"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// maxKeyUnits is the maximum length of a key in UTF-16 units (1 KiB).
const maxKeyUnits = 512

// checkKey checks the rules for the PartitionKey or RowKey, named by property.
func checkKey(property, key string) *protocol.Fault {
	if !utf8.ValidString(key) {
		return protocol.InvalidInput("One of the request inputs is not valid.")
	}
	if n := edm.Units(key); n > maxKeyUnits {
		return protocol.Refuse(http.StatusBadRequest, "KeyValueTooLarge",
			fmt.Sprintf("The %s exceeds the maximum allowed size (1KB): it has %d UTF-16 units.", property, n))
	}
	for _, r := range key {
		if r < 0x20 || r >= 0x7F && r <= 0x9F || r == '/' || r == '\\' || r == '#' || r == '?' {
			return outOfRange(property, key)
		}
	}
	return nil
}

// CheckKeys checks the rules for both keys.
func CheckKeys(pk, rk string) *protocol.Fault {
	if fault := checkKey(PartitionKey, pk); fault != nil {
		return fault
	}
	return checkKey(RowKey, rk)
}

func checkName(name string) *protocol.Fault {
	if edm.IsPlainName(name) {
		return nil
	}
	if edm.Units(name) > edm.MaxNameUnits {
		return protocol.Refuse(http.StatusBadRequest, "PropertyNameTooLong", "The property name exceeds the maximum allowed length (255).")
	}
	if edm.CheckName(name) != nil {
		return protocol.Refuse(http.StatusBadRequest, "PropertyNameInvalid", "The property name '"+name+"' is invalid.")
	}
	return nil
}

// Check checks the rules for a whole entity as it would be stored: keys, number of properties, sizes.
func Check(pk, rk string, properties []Property) *protocol.Fault {
	if fault := CheckKeys(pk, rk); fault != nil {
		return fault
	}
	if n := len(properties); n > edm.MaxProperties {
		return protocol.Refuse(http.StatusBadRequest, "TooManyProperties", fmt.Sprintf("The entity contains more properties than allowed. "+
			"Each entity can include up to %d properties to store data. Each entity also has 3 system properties. This one has %d.", edm.MaxProperties, n))
	}
	size := edm.KeySize(pk, rk)
	for i := range properties {
		if properties[i].value.Check() != nil {
			return protocol.Refuse(http.StatusBadRequest, "PropertyValueTooLarge", "The property value exceeds the maximum allowed size (64KB). "+
				"If the property value is a string, it is UTF-16 encoded and the maximum number of characters should be 32K or less.")
		}
		size += edm.PropertySize(properties[i].name, properties[i].value)
	}
	if size > edm.MaxEntitySize {
		return protocol.Refuse(http.StatusBadRequest, "EntityTooLarge", fmt.Sprintf("The entity is larger than the maximum allowed size (1MB): it has %d bytes.", size))
	}
	return nil
}

func invalidBody() *protocol.Fault {
	return protocol.InvalidInput("An error occurred while processing this request.")
}

func outOfRange(property, value string) *protocol.Fault {
	return protocol.Refuse(http.StatusBadRequest, "OutOfRangeInput", "The '"+property+"' parameter of value '"+value+"' is out of range.")
}
