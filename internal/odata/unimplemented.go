package odata

// Unimplemented reports whether a filter that Parse refuses is one of OData that the table service does not implement: it calls
// a function, as startswith(Name,'a') does, or calculates, as Age add 1 eq 6 does. The service answers such filters with another
// status than text that is no filter at all.
func Unimplemented(text string) bool {
	l := lexer{text: text}
	operand := false // the token before can be the left side of a calculation
	for {
		t, err := l.next()
		switch {
		case err != nil || t.kind == kindEnd:
			return false
		case t.kind != kindWord:
			operand = t.kind == kindNumber || t.kind == kindString || t.kind == kindClose
		case isJoint(t.text):
			operand = false
		case operand && isArithmetic(t.text) || l.pos < len(text) && text[l.pos] == '(':
			return true
		default:
			operand = true
		}
	}
}

// isJoint tells the words between operands and conditions.
func isJoint(word string) bool {
	_, isOp := ParseOp(word)
	return isOp || word == "and" || word == "or" || word == "not"
}

func isArithmetic(word string) bool {
	return word == "add" || word == "sub" || word == "mul" || word == "div" || word == "mod"
}
