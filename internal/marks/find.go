package marks

// Find is a read of a key through its row. Start with the zero value, call Row with the row, and do what the answers say. It works for many rows of a
// query as well as for one.
type Find struct {
	Last      Row  // the row as read last
	Asked     int  // how many of its entities have been read
	OnlyOwner bool // copies have no content, so that settled ones are followed, too
	Without   Rules
}

// Step is the next step of a read.
type Step uint8

// The steps.
const (
	Nobody   Step = iota // no entity has the key
	Content              // the row is settled: its content is the answer
	Ask                  // read Find.Entity, and call Find.Has
	Answer               // the entity that was read last is the answer
	AskAgain             // read the row again, and call Find.Row
)

// Row continues with the row, as read.
func (f *Find) Row(r Row) Step {
	if f.Last.ETag == r.ETag && !f.Without.Has(ExpiryFirst) {
		return Nobody // Last stays as it was read before the entities: whether it has expired is judged by that answer
	}
	same := f.Last.ETag == r.ETag
	f.Last, f.Asked = r, 0
	switch {
	case same || len(r.Names) == 0:
		return Nobody
	case r.Mark == "" && !f.OnlyOwner || f.Without.Has(FollowMarks):
		return Content
	}
	return f.next()
}

// Entity returns the entity to read.
func (f *Find) Entity() Key { return f.Last.Names[f.Asked-1] }

// Has continues after Ask; has says whether the entity has the row's key.
func (f *Find) Has(has bool) Step {
	if has {
		return Answer
	}
	return f.next()
}

func (f *Find) next() Step {
	switch {
	case f.Asked < len(f.Last.Names) && !(f.Asked == 1 && f.Without.Has(ReadNext)):
		f.Asked++
		return Ask
	case f.Without.Has(RowAgain):
		return Nobody
	}
	// A change set may have passed the key to another entity after the row was read, and before its new owner was. It wrote the row before.
	return AskAgain
}
