package core

import (
	"context"

	"github.com/tablepatterns/tablepatterns/entity"
)

type Later func(ctx context.Context, meets func(entity.Key, entity.Properties) bool) (any, error)
