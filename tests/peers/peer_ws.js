// Node's ws behind the interface of bridge.py.
'use strict';

const fs = require('fs');
const WebSocket = require('ws');

const [url, ca] = process.argv.slice(2);

function put(kind, payload = Buffer.alloc(0)) {
  const head = Buffer.alloc(5);
  head.write(kind);
  head.writeUInt32BE(payload.length, 1);
  process.stdout.write(Buffer.concat([head, payload]));
}

const ws = new WebSocket(url, {
  maxPayload: 1 << 28,
  ca: ca ? fs.readFileSync(ca) : undefined,
});

function obey(kind, payload) {
  if (kind === 'T') ws.send(payload, { binary: false });
  else if (kind === 'F') ws.send(payload, { binary: false, fin: false });
  else if (kind === 'L') ws.send(payload, { binary: false, fin: true });
  else if (kind === 'P') ws.ping(payload);
  else if (kind === 'C') ws.close(payload.readUInt16BE(0), payload.subarray(2));
}

let held = [];
let size = 0;

function onInput(data) {
  held.push(data);
  size += data.length;
  for (;;) {
    if (size < 5) return;
    if (held[0].length < 5) held = [Buffer.concat(held)];
    const end = 5 + held[0].readUInt32BE(1);
    if (size < end) return;
    const all = Buffer.concat(held);
    obey(String.fromCharCode(all[0]), all.subarray(5, end));
    held = [all.subarray(end)];
    size -= end;
  }
}

ws.on('open', () => {
  put('O');
  process.stdin.on('data', onInput);
});
ws.on('message', (data) => put('M', data));
ws.on('ping', (data) => put('P', data));
ws.on('pong', (data) => put('Q', data));
ws.on('error', (error) => put('E', Buffer.from(String(error))));
ws.on('close', (code, reason) => {
  const payload = Buffer.concat([Buffer.alloc(2), reason]);
  payload.writeUInt16BE(code);
  put('X', code === 1006 ? Buffer.alloc(0) : payload);
});
