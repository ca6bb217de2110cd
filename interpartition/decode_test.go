package interpartition_test

import (
	"encoding/json"
	"fmt"
)

func decode(body []byte) (map[string]string, error) {
	var values map[string]any
	if err := json.Unmarshal(body, &values); err != nil {
		return nil, err
	}
	row := map[string]string{}
	for name, value := range values {
		row[name] = fmt.Sprint(value)
	}
	return row, nil
}
