// Writes employees by the steps that docs/reference/storage-format.md gives to a program without the library. Each action is for one entity.
const fs = require("fs");
const { randomBytes } = require("crypto");
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const newID = () => Array.from(randomBytes(26), (b) => alphabet[b & 31]).join("");

// openGuarding opens a table for transactions whose deletes have ETags: the client itself sends If-Match: * with each of them.
function openGuarding(table, etags) {
	const client = open(table);
	client.pipeline.addPolicy({
		name: "etagsOfDeletes",
		sendRequest(request, next) {
			if (request.url.endsWith("$batch")) {
				let n = 0;
				request.body = request.body.replace(/(DELETE [^]*?if-match: )\*/gi, (_, before) => before + (etags[n++] ?? "*"));
				request.headers.set("content-length", Buffer.byteLength(request.body));
			}
			return next(request);
		},
	});
	return client;
}

// typed gives Doubles their type again: the client reads a whole one as a number without one.
function typed(properties) {
	if (typeof properties.Salary === "number") properties.Salary = { type: "Double", value: String(properties.Salary) };
	return properties;
}

const known = ["_tpWrite", "_tpIncarnation", "_tpCopies"];

// textOf returns a text that was given, or read with its type.
const textOf = (v) => v?.value ?? v ?? "";

// read returns an entity's own row: its ETag, its incarnation, its properties, and the library's own that a later version has written.
async function read(client, partition, row, copies) {
	const e = await client.getEntity(partition, row, { disableTypeConversion: true });
	for (const name of ["_tpPrimary", "_tpShared", "_tpLayout"]) if (name in e) throw new Error(`the row has ${name}`);
	if (textOf(e._tpCopies) !== copies) throw new Error(`the row lists the indexes ${textOf(e._tpCopies)}`);
	const found = { etag: e.etag, incarnation: textOf(e._tpIncarnation) || newID(), email: textOf(e.Email), badge: textOf(e.Badge), properties: {}, carried: {} };
	for (const [name, v] of Object.entries(e)) {
		if (["etag", "partitionKey", "rowKey", "timestamp", ...known].includes(name) || name.startsWith("odata.")) continue;
		(name.startsWith("_tp") ? found.carried : found.properties)[name] = v;
	}
	typed(found.properties);
	return found;
}

// near writes an entity with the index "email" in its partition.
const near = {
	rows(a, incarnation, properties, carried) {
		const own = { partitionKey: a.partition, rowKey: a.row, ...properties, _tpIncarnation: incarnation, _tpCopies: "email", _tpWrite: newID() };
		return [{ ...own, ...carried }, { ...own, rowKey: `email_${textOf(properties.Email)}`, _tpPrimary: a.row }];
	},
	async insert(a) {
		const [own, copy] = this.rows(a, newID(), typed(a.properties), {});
		const t = new TableTransaction();
		t.createEntity(own);
		t.createEntity(copy);
		await open(a.table).submitTransaction(t.actions);
	},
	async replace(a) {
		const client = open(a.table);
		const old = await read(client, a.partition, a.row, "email");
		const [own, copy] = this.rows(a, old.incarnation, typed({ ...old.properties, ...a.properties }), old.carried);
		const t = new TableTransaction();
		t.updateEntity(own, "Replace", { etag: old.etag });
		if (textOf(own.Email) === old.email) {
			t.upsertEntity(copy, "Replace");
		} else {
			t.createEntity(copy);
			t.deleteEntity(a.partition, `email_${old.email}`);
		}
		await client.submitTransaction(t.actions);
	},
	async delete(a) {
		const old = await read(open(a.table), a.partition, a.row, "email");
		const t = new TableTransaction();
		t.deleteEntity(a.partition, a.row);
		t.deleteEntity(a.partition, `email_${old.email}`);
		await openGuarding(a.table, [old.etag]).submitTransaction(t.actions);
	},
};

// onceOnly sends each request once: nothing guards an insert that is repeated.
const onceOnly = (table) => new TableClient(process.env.TABLE_ENDPOINT, table, new AzureNamedKeyCredential(process.env.ACCOUNT_NAME, process.env.ACCOUNT_KEY),
	{ allowInsecureConnection: true, retryOptions: { maxRetries: 0 } });

// outside writes an entity with the unique global index "badge" in its table. With a.ownOnly the writer dies when it has written the own row.
const outside = {
	// mark marks the copies under the keys that the entity has, and inserts marked rows for those that it takes. It returns the marks' ETags.
	async mark(client, a, old, taken) {
		const id = newID(), marks = {};
		if (old) marks[old.badge] = (await client.updateEntity({ partitionKey: "badge", rowKey: old.badge, _tpMark: id }, "Merge", { etag: "*" })).etag;
		if (taken !== null && taken !== old?.badge) {
			const row = { partitionKey: "badge", rowKey: taken, _tpPartition: a.partition, _tpPrimary: a.row, _tpMark: id, _tpAcquirer: id };
			marks[taken] = (await client.createEntity(old ? { ...row, _tpBase: old.etag } : row)).etag;
		}
		return marks;
	},
	// change marks, writes the own row in time, and settles.
	async change(a, old, properties) {
		const client = onceOnly(a.table), began = performance.now();
		const marks = await this.mark(client, a, old, properties && textOf(properties.Badge));
		if (performance.now() - began > 25_000) throw new Error("too late");
		if (properties === null) {
			await client.deleteEntity(a.partition, a.row, { etag: old.etag });
			if (!a.ownOnly) await client.deleteEntity("badge", old.badge, { etag: marks[old.badge] });
			return;
		}
		const incarnation = old?.incarnation ?? newID(), write = newID();
		const own = { partitionKey: a.partition, rowKey: a.row, ...properties, ...old?.carried, _tpIncarnation: incarnation, _tpCopies: ">badge", _tpWrite: write };
		const { etag } = old === null ? await client.createEntity(own) : await client.updateEntity(own, "Replace", { etag: old.etag });
		if (a.ownOnly) return;
		const key = textOf(properties.Badge);
		await client.updateEntity({ partitionKey: "badge", rowKey: key, ...properties, _tpIncarnation: incarnation, _tpCopies: ">badge", _tpPartition: a.partition, _tpPrimary: a.row,
			_tpVersion: etag, _tpWrite: write }, "Replace", { etag: marks[key] });
		if (old && old.badge !== key) await client.deleteEntity("badge", old.badge, { etag: marks[old.badge] });
	},
	insert(a) { return this.change(a, null, typed(a.properties)); },
	async replace(a) {
		const old = await read(open(a.table), a.partition, a.row, ">badge");
		await this.change(a, old, typed({ ...old.properties, ...a.properties }));
	},
	async delete(a) { await this.change(a, await read(open(a.table), a.partition, a.row, ">badge"), null); },
};

async function main() {
	for (const a of JSON.parse(fs.readFileSync(0, "utf8"))) await { near, outside }[a.index][a.verb](a);
	console.log("done");
}
main().catch((e) => { console.error(e); process.exit(1); });
