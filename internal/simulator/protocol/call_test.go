package protocol

import "testing"

func TestSameName(t *testing.T) {
	if SameName("tasks", "tas\u212As") || !SameName("Tasks", "tASKS") {
		t.Error("names of tables are compared by more, or less, than their case in ASCII")
	}
}
