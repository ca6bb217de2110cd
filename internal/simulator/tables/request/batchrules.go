package simulator

import (
	"fmt"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/edm"
)

// operations reads a transaction's parts and holds the rules for them and for the whole. prefix is what stands before
// their addresses, the account's name on services that want it there. The fault comes with the index of its operation.
func (b *batch) operations(prefix string) (ops []*operation, index int, fault *Fault) {
	if len(b.parts) > edm.MaxBatchOps {
		return nil, edm.MaxBatchOps - 1, faultInput(fmt.Sprintf("The batch request operation exceeds the maximum %d changes per change set.", edm.MaxBatchOps))
	}
	ops = make([]*operation, len(b.parts))
	for i := range b.parts {
		if ops[i], fault = b.parts[i].operation(prefix); fault != nil {
			return nil, i, fault
		}
	}
	index, fault = checkGroup(ops)
	return ops, index, fault
}

// checkGroup holds the rules for an entity group: one table, one partition, each row once.
func checkGroup(ops []*operation) (index int, fault *Fault) {
	seen := make(map[string]bool, len(ops))
	for i, op := range ops {
		if op.pk != ops[0].pk || !SameName(op.table, ops[0].table) {
			return i, refuse(http.StatusBadRequest, "CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group.")
		}
		if seen[op.rk] {
			return i, refuse(http.StatusBadRequest, "InvalidDuplicateRow",
				"The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.")
		}
		seen[op.rk] = true
	}
	return 0, nil
}
