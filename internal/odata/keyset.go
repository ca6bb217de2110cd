package odata

import "slices"

// keySet is a filter that only lists keys. If rows is nil, it includes all rows.
type keySet struct {
	hasPartition bool
	partition    string
	rows         []string
}

// keySetOf converts e to a keySet; ok is false if e does more than list keys. PartitionKey eq p and (RowKey eq a or RowKey eq
// b) is a keySet, and so is its form (PartitionKey eq p and RowKey eq a) or (PartitionKey eq p and RowKey eq b).
func keySetOf(e Expr) (set keySet, ok bool) {
	switch e := e.(type) {
	case Comparison:
		key, isString := e.Value.Str()
		switch {
		case e.Op != Eq || !isString:
			return keySet{}, false
		case e.Property == partitionKey:
			return keySet{hasPartition: true, partition: key}, true
		case e.Property == rowKey:
			return keySet{rows: []string{key}}, true
		}
	case And:
		l, ok1 := keySetOf(e.Left)
		r, ok2 := keySetOf(e.Right)
		if ok1 && ok2 {
			return l.intersect(r)
		}
	case Or:
		l, ok1 := keySetOf(e.Left)
		r, ok2 := keySetOf(e.Right)
		if ok1 && ok2 {
			return l.union(r)
		}
	}
	return keySet{}, false
}

func (s keySet) intersect(t keySet) (keySet, bool) {
	switch {
	case !s.hasPartition:
		s.hasPartition, s.partition = t.hasPartition, t.partition
	case t.hasPartition && t.partition != s.partition:
		return keySet{}, false
	}
	switch {
	case s.rows == nil:
		s.rows = t.rows
	case t.rows != nil:
		s.rows = slices.DeleteFunc(s.rows, func(key string) bool { return !slices.Contains(t.rows, key) })
	}
	return s, true
}

func (s keySet) union(t keySet) (keySet, bool) {
	if s.hasPartition != t.hasPartition || s.partition != t.partition || s.rows == nil || t.rows == nil {
		return keySet{}, false
	}
	for _, key := range t.rows {
		if !slices.Contains(s.rows, key) {
			s.rows = append(s.rows, key)
		}
	}
	return s, true
}
