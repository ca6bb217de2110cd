package request

import (
	"fmt"
	"net/http"

	"github.com/tablepatterns/tablepatterns/internal/edm"
	"github.com/tablepatterns/tablepatterns/internal/simulator/protocol"
)

// Operations parses a transaction's parts, and checks the rules for each and for the whole. prefix is the text before the
// resource in their paths, such as the account's name. With a fault it returns the index of its operation.
func (b *Batch) Operations(prefix string) (ops []*Operation, index int, fault *protocol.Fault) {
	if len(b.Parts) > edm.MaxBatchOps {
		return nil, edm.MaxBatchOps - 1, protocol.InvalidInput(fmt.Sprintf("The batch request operation exceeds the maximum %d changes per change set.", edm.MaxBatchOps))
	}
	ops = make([]*Operation, len(b.Parts))
	for i := range b.Parts {
		if ops[i], fault = b.Parts[i].operation(prefix); fault != nil {
			return nil, i, fault
		}
	}
	index, fault = checkGroup(ops)
	return ops, index, fault
}

// checkGroup checks the rules for an entity group: one table, one partition, each row once.
func checkGroup(ops []*Operation) (index int, fault *protocol.Fault) {
	seen := make(map[string]bool, len(ops))
	for i, op := range ops {
		if op.Partition != ops[0].Partition || !protocol.SameName(op.Table, ops[0].Table) {
			return i, protocol.Refuse(http.StatusBadRequest, "CommandsInBatchActOnDifferentPartitions", "All commands in a batch must operate on same entity group.")
		}
		if seen[op.Row] {
			return i, protocol.Refuse(http.StatusBadRequest, "InvalidDuplicateRow",
				"The batch request contains multiple changes with same row key. An entity can appear only once in a batch request.")
		}
		seen[op.Row] = true
	}
	return 0, nil
}
