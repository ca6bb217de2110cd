package eventual

import (
	"context"

	"github.com/tablepatterns/tablepatterns/internal/resource"
	"github.com/tablepatterns/tablepatterns/internal/rows"
)

const opReady = "Ready"

// ResourcesOf returns the resources that Queue.Create creates, for package patterns.
func ResourcesOf(_ rows.Pass, q *Queue) []resource.Resource {
	var all []resource.Resource
	for i, shard := range append(q.shards[:len(q.shards):len(q.shards)], q.poison) {
		name := q.name + poisonSuffix
		if i < len(q.shards) {
			name = q.shardNames[i]
		}
		all = append(all, resource.Resource{Kind: resource.Queue, Name: name, Check: func(ctx context.Context) error {
			_, err := shard.GetProperties(ctx, nil)
			return failure(opReady, name, err)
		}})
	}
	if q.claims != nil {
		all = append(all, resource.Resource{Kind: resource.Container, Name: q.claimsName, Check: func(ctx context.Context) error {
			_, err := q.claims.GetProperties(ctx, nil)
			return failure(opReady, q.claimsName, err)
		}})
	}
	return all
}
