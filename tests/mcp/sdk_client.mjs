// A session by the official SDK's client: node sdk_client.mjs [--brief] MODE SDK COMMAND ARG...
// MODE: 1 (the SDK's version 1), 2 (version 2 with a handshake), auto or 2026-07-28 (version 2).
// Prints one JSON object with what it has seen. --brief: it lists the tools and runs one command.
import { pathToFileURL } from "node:url";

const words = process.argv.slice(2);
const brief = words[0] === "--brief";
const [mode, sdk, command, ...args] = brief ? words.slice(1) : words;
const load = (name) => import(pathToFileURL(`${sdk}/dist/${name}`).href);
const old = mode === "1";
const { Client } = await load(old ? "esm/client/index.js" : "index.mjs");
const { StdioClientTransport } = await load(old ? "esm/client/stdio.js" : "stdio.mjs");
const asking = old ? (await load("esm/types.js")).ElicitRequestSchema : "elicitation/create";
const negotiation = { 1: {}, 2: {}, auto: { versionNegotiation: { mode: "auto" } } }[mode] ??
  { versionNegotiation: { mode: { pin: mode } } };

const seen = { questions: [], progress: 0 };
const client = new Client({ name: "test", version: "1" },
                          { capabilities: { elicitation: { form: {} } }, ...negotiation });
client.setRequestHandler(asking, async (request) => {
  seen.questions.push(request.params.message);
  return { action: "accept", content: {} };
});
await client.connect(new StdioClientTransport({ command, args, env: process.env }));
seen.version = client.getServerVersion().name;
seen.tools = (await client.listTools()).tools.map((tool) => tool.name);

const shell = (script, more = {}, options = {}) =>
  client.callTool({ name: "shell", arguments: { command: script, login: false, ...more } },
                  ...(old ? [undefined] : []), options);
seen.result = (await shell("echo out; exit 3")).structuredContent;
if (brief) {
  await client.close();
  console.log(JSON.stringify({ version: seen.version, tools: seen.tools, result: seen.result }));
  process.exit(0);
}
seen.asked = (await shell("touch /tmp/sdk-asked; echo $?")).structuredContent.output;
seen.denied = (await shell("id")).structuredContent.output;
// The time limit of a request is shorter than the command: progress extends it.
seen.long = (await shell("sleep 3", { timeout_ms: 60000 }, {
  timeout: 2200, resetTimeoutOnProgress: true, onprogress: () => { seen.progress += 1; },
})).structuredContent.exit_code;
const session = (await shell("cat", { yield_time_ms: 50 })).structuredContent.session_id;
const write = (more) => client.callTool({ name: "write_stdin",
                                          arguments: { session_id: session, ...more } });
seen.echo = (await write({ chars: "hi\n", yield_time_ms: 20000 })).structuredContent.output;
seen.end = (await write({ signal: "TERM", yield_time_ms: 20000 })).structuredContent.signal;
seen.bad = (await client.callTool({ name: "shell", arguments: { command: 5 } })).isError;
const abort = new AbortController();
const cancelled = shell("sleep 1000", { timeout_ms: 1000000 }, { signal: abort.signal });
setTimeout(() => abort.abort("enough"), 100);
seen.cancelled = await cancelled.then(() => "answered", () => "cancelled");
if (mode !== "auto" && mode !== "2026-07-28") await client.ping();
await client.close();
console.log(JSON.stringify(seen));
