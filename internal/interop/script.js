// Writes rows that the test gives, and reads rows and returns them in the same form. Each operation is for one table.
const fs = require("fs");
const toSDK = {
	String: (text) => text,
	Boolean: (text) => text === "true",
	Int32: (text) => Number(text),
	Int64: (text) => ({ type: "Int64", value: text }),
	Double: (text) => ({ type: "Double", value: text }),
	DateTime: (text) => ({ type: "DateTime", value: text }),
	Guid: (text) => ({ type: "Guid", value: text }),
	Binary: (text) => ({ type: "Binary", value: text }),
};
const known = new Set(["odata.etag", "odata.metadata", "etag", "partitionKey", "rowKey", "timestamp"]);

// fromSDK reads a value that was got with disableTypeConversion.
function fromSDK(v) {
	if (v !== null && typeof v === "object" && "type" in v) return { type: v.type, text: String(v.value) };
	switch (typeof v) {
	case "string": return { type: "String", text: v };
	case "boolean": return { type: "Boolean", text: String(v) };
	case "number": return Number.isInteger(v) ? { type: "Int32", text: String(v) } : { type: "Double", text: String(v) };
	}
	return { type: "unknown", text: JSON.stringify(v) };
}

async function inTurn(items, atOnce, f) {
	let next = 0;
	await Promise.all(Array.from({ length: atOnce }, async () => { while (next < items.length) await f(items[next++]); }));
}

async function main() {
	const { write, read } = JSON.parse(fs.readFileSync(0, "utf8"));
	for (const { table, rows } of write ?? []) {
		const client = open(table);
		await inTurn(rows, 4, async (row) => {
			const entity = { partitionKey: row.partition, rowKey: row.row };
			for (const [name, v] of Object.entries(row.properties)) entity[name] = toSDK[v.type](v.text);
			await client.createEntity(entity);
		});
	}
	const answers = {};
	for (const { table, keys } of read ?? []) {
		const client = open(table);
		const found = [];
		const take = (e) => {
			const properties = {};
			for (const name of Object.keys(e)) if (!known.has(name)) properties[name] = fromSDK(e[name]);
			found.push({ partition: e.partitionKey, row: e.rowKey, properties });
		};
		for await (const e of client.listEntities({ disableTypeConversion: true })) take(e);
		await inTurn(keys ?? [], 4, async ([partition, row]) => take(await client.getEntity(partition, row, { disableTypeConversion: true })));
		answers[table] = found;
	}
	process.stdout.write(JSON.stringify(answers));
}
main().catch((e) => { console.error(e); process.exit(1); });
