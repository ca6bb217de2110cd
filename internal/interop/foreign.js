// Writes employees by the steps that docs/reference/storage-format.md gives to a program without the library. Each action is for one entity.
const fs = require("fs");
const { createHash, randomBytes } = require("crypto");
const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
const newID = () => Array.from(randomBytes(26), (b) => alphabet[b & 31]).join("");

// base32 writes bytes whose number is a multiple of 5, which needs no padding.
function base32(bytes) {
	const bits = Array.from(bytes, (b) => b.toString(2).padStart(8, "0")).join("");
	return bits.match(/.{5}/g).map((five) => alphabet[parseInt(five, 2)]).join("");
}

function claimRow(copyRow, partition, row, reserved) {
	const hash = createHash("sha256");
	for (const text of [copyRow, partition, row, reserved]) hash.update(`${Buffer.byteLength(text)} ${text}`);
	return "\uFFFC" + base32(hash.digest().subarray(0, 20));
}

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

// outside writes an entity with the global index "badge" in its table. Its intent is on the queue. With a.ownOnly the writer dies early.
const outside = {
	async own(a, old, properties) {
		const client = open(a.table);
		const incarnation = old?.incarnation ?? newID();
		const own = { partitionKey: a.partition, rowKey: a.row, ...properties, ...old?.carried, _tpIncarnation: incarnation, _tpWrite: newID() };
		const { etag } = old === null ? await client.createEntity(own) : await client.updateEntity(own, "Replace", { etag: old.etag });
		const write = newID();
		const copy = { partitionKey: "badge", rowKey: textOf(properties.Badge), ...properties, _tpIncarnation: incarnation, _tpPartition: a.partition, _tpPrimary: a.row, _tpVersion: etag, _tpWrite: write };
		const claim = { partitionKey: "badge", rowKey: claimRow(copy.rowKey, a.partition, a.row, ""), _tpPartition: a.partition, _tpPrimary: a.row, _tpClaim: copy.rowKey, _tpWrite: write };
		return { client, copy, claim };
	},
	async place(a, old, properties) {
		const { client, copy, claim } = await this.own(a, old, properties);
		if (a.ownOnly) return;
		const t = new TableTransaction();
		if (old?.badge === copy.rowKey) {
			t.upsertEntity(copy, "Replace");
			t.updateEntity(claim, "Merge", { etag: "*" });
		} else {
			t.createEntity(copy);
			t.createEntity(claim);
		}
		await client.submitTransaction(t.actions);
		if (old !== null && old.badge !== copy.rowKey) await this.remove(a, old.badge);
		await this.unchanged(a, copy._tpVersion);
	},
	// unchanged reads the own row once more: where another writer has changed it, a worker does the rest.
	async unchanged(a, etag) {
		const now = await open(a.table).getEntity(a.partition, a.row).then((e) => e.etag, (e) => { if (e.statusCode !== 404) throw e; });
		if (now !== etag) throw new Error(`the row has ETag ${now}, not ${etag}`);
	},
	async remove(a, key) {
		const t = new TableTransaction();
		t.deleteEntity("badge", claimRow(key, a.partition, a.row, ""));
		t.deleteEntity("badge", key);
		await open(a.table).submitTransaction(t.actions);
	},
	insert(a) { return this.place(a, null, typed(a.properties)); },
	async replace(a) {
		const old = await read(open(a.table), a.partition, a.row, "");
		await this.place(a, old, typed({ ...old.properties, ...a.properties }));
	},
	async delete(a) {
		const old = await read(open(a.table), a.partition, a.row, "");
		await open(a.table).deleteEntity(a.partition, a.row, { etag: old.etag });
		await this.remove(a, old.badge);
		await this.unchanged(a, undefined);
	},
};

async function main() {
	for (const a of JSON.parse(fs.readFileSync(0, "utf8"))) await { near, outside }[a.index][a.verb](a);
	console.log("done");
}
main().catch((e) => { console.error(e); process.exit(1); });
