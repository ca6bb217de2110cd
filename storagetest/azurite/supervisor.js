"use strict";
// Runs Azurite inside this process and ends it when standard input closes. Nothing is ever written there: the pipe's
// only writing end is in the process that started this one, so it closes when that process ends, in whatever way.
//
// Prints one line of JSON to standard output: {"Blob","Queue","Table"} with the addresses once all three listen, or
// {"Error"}. After that, only standard error is used, and only if Azurite breaks.
const fs = require("node:fs");
const path = require("node:path");
const [node, entry, ...flags] = process.argv;

let ready = false;
const words = []; // what Azurite says before it is ready, for the error message
function fail(message) {
  if (!ready) {
    ready = true;
    fs.writeSync(1, JSON.stringify({ Error: message }) + "\n");
  }
  process.exit(1);
}

if (Number(process.versions.node.split(".")[0]) < 20) {
  fail("Node.js " + process.versions.node + " is too old: install Node.js 20 or newer");
}

function end() {
  // With data on disk, Azurite's own shutdown writes it out; the process ends when its servers are closed.
  if (flags.includes("--inMemoryPersistence") || !process.emit("SIGTERM")) {
    process.exit(0);
  }
  setTimeout(() => process.exit(1), 10000).unref();
}
process.stdin.once("end", end).once("error", end).resume();

// The reading end of standard output closes once the line is read.
process.stdout.on("error", () => {});
process.stderr.on("error", () => {});

function unexpected(err) {
  fail(String((err && err.stack) || err));
}
process.on("uncaughtException", unexpected);
process.on("exit", (code) => {
  if (!ready && code !== 0) {
    fail(words.join("\n") || "exit code " + code);
  }
});

const addresses = {};
const listening = /^Azurite (Blob|Queue|Table) service is successfully listening at (\S+)$/;
console.log = console.info = (message) => {
  if (ready) {
    return;
  }
  words.push(String(message));
  const found = listening.exec(String(message));
  if (!found) {
    return;
  }
  addresses[found[1]] = found[2];
  if (Object.keys(addresses).length === 3) {
    ready = true;
    // From here on an unexpected error is Node's to report, on standard error.
    process.off("uncaughtException", unexpected);
    fs.writeSync(1, JSON.stringify(addresses) + "\n");
  }
};
const report = console.error;
console.error = (...message) => (ready ? report(...message) : words.push(message.join(" ")));

// Once a minute for queues, and every ten minutes for blobs, Azurite removes the stored texts that nothing refers to any
// more. It removes the record of each one by a search through all of them, and lets no request in between: after 4,000
// messages that were put and deleted, it answered nothing for more than a minute. Here the records of one round are removed
// at once, in one pass.
function removeRecordsAtOnce() {
  const file = path.join(path.dirname(entry), "common", "persistence", "LokiExtentMetadataStore.js");
  const store = require(file).default.prototype;
  if (typeof store.deleteExtent !== "function") {
    throw new Error(file + " has no deleteExtent: this supervisor is for another version of Azurite");
  }
  store.deleteExtent = async function (id) {
    if (!this.unreferenced) {
      this.unreferenced = new Set();
      setImmediate(() => {
        const ids = this.unreferenced;
        this.unreferenced = undefined;
        this.db.getCollection(this.EXTENTS_COLLECTION).removeWhere((record) => ids.has(record.id));
      });
    }
    this.unreferenced.add(id);
  };
}
removeRecordsAtOnce();

// For the test of the above, queue texts are collected more often than once a minute.
if (process.env.STORAGETEST_COLLECT_MS) {
  require(path.join(path.dirname(entry), "queue", "utils", "constants.js")).DEFAULT_GC_INTERVAL_MS = Number(process.env.STORAGETEST_COLLECT_MS);
}

// Azurite reads its flags from process.argv.
process.argv = [node, entry, ...flags];
require(entry);
