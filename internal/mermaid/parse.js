// Reads a JSON array of diagrams from standard input and prints a JSON array of their errors, "" for a diagram that mermaid parses.
// mermaid cleans labels with DOMPurify, which needs the document of a browser. This one lets every label through unchanged.
const fs = require("fs");
const vm = require("vm");

const body = { nodeType: 1, innerHTML: "" };
const document = {
	nodeType: 9, body, documentElement: body, readyState: "complete",
	implementation: { createHTMLDocument: () => document, createDocument: () => document },
	createNodeIterator: () => ({ nextNode: () => null }), createDocumentFragment: () => ({}), createElement: () => ({}),
	getElementsByTagName: () => [body], importNode: (node) => node, addEventListener() {}, querySelector: () => null, querySelectorAll: () => [],
};
class Element {}
Element.prototype.cloneNode = Element.prototype.remove = () => {};
class DOMParser {
	parseFromString(text) {
		body.innerHTML = text.replace(/^<remove><\/remove>/, "");
		return document;
	}
}
const empty = class {};
globalThis.document = document;
globalThis.window = { document, Element, DOMParser, HTMLTemplateElement: empty, Node: empty, NamedNodeMap: empty, HTMLFormElement: empty, NodeFilter: {}, addEventListener() {} };
globalThis.addEventListener = () => {};

vm.runInThisContext(fs.readFileSync(process.argv[process.argv.length - 1], "utf8"));

(async () => {
	mermaid.initialize({ startOnLoad: false });
	const errors = [];
	for (const text of JSON.parse(fs.readFileSync(0, "utf8"))) {
		try {
			await mermaid.parse(text);
			errors.push("");
		} catch (e) {
			errors.push(String(e.message || e) || "an error without a message");
		}
	}
	console.log(JSON.stringify(errors));
})();
