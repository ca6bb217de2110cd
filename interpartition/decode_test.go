package interpartition_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"github.com/tablepatterns/tablepatterns/patterns"
	"github.com/tablepatterns/tablepatterns/storagetest"
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

// outcomeUnknown reports whether a caller who got err cannot know whether the change was made.
func outcomeUnknown(err error) bool {
	return errors.Is(err, patterns.ErrUnknownOutcome) || errors.Is(err, storagetest.ErrDied) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
