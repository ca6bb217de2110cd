package odata

// Unimplemented reports whether a filter that Parse refuses is valid OData that the table service does not
// implement: it calls a function, as startswith(Name,'a') does, or calculates, as Age add 1 eq 6 does. The
// service answers such a filter with another status than a text that is not OData.
func Unimplemented(text string) bool {
	l := lexer{text: text}
	operand := false // the previous token can be the left operand of a calculation
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

// isJoint reports whether a word is an operator between operands or conditions.
func isJoint(word string) bool {
	_, isOp := ParseOp(word)
	return isOp || word == "and" || word == "or" || word == "not"
}

func isArithmetic(word string) bool {
	return word == "add" || word == "sub" || word == "mul" || word == "div" || word == "mod"
}
