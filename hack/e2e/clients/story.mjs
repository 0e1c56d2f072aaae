// One assistant's whole visit, told through a public MCP client: open a project, look around, change it,
// run commands and follow, stop and cancel them, come back over a new connection, hand over, leave. The
// caller says which client by the first argument; what happened on disk is compared with what the answers
// claim. Any difference ends the process with code 1.
//
// Environment: MCP_URL (endpoint), MCP_AUTHORIZATION (header value), MCP_DIR (a git project, made by the
// caller), or MCP_COMMAND (JSON list) for a server on standard input and output.

import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from './connect.mjs';

const dir = process.env.MCP_DIR;
const onDisk = (name) => readFileSync(join(dir, name), 'utf8');
const digest = (bytes) => 'sha256:' + createHash('sha256').update(bytes).digest('hex');
const hints = ['readOnlyHint', 'destructiveHint', 'idempotentHint', 'openWorldHint'];
const allTools = ['bash', 'edit', 'find', 'grep', 'ls', 'operation_cancel', 'operation_wait', 'read', 'run_start',
  'skill_info', 'work_handoff', 'workspace_close', 'workspace_list', 'workspace_open', 'write'];

const kind = process.argv[2];
let client = await connect(kind);

async function call(name, args, options) {
  const params = { name, arguments: args };
  const result = await (kind.startsWith('v1') ? client.callTool(params, undefined, options) : client.callTool(params, options));
  const texts = result.content.filter((b) => b.type === 'text').map((b) => b.text);
  assert.equal(result.structuredContent.output, texts.join('\n'), `${name}: output repeats the text`);
  console.log(`${name}: ${result.isError ? result.structuredContent.code : 'ok'}`);
  return { failed: result.isError === true, text: texts.join('\n'), ...result.structuredContent };
}

async function ok(name, args, options) {
  const result = await call(name, args, options);
  assert.equal(result.failed, false, `${name}: ${result.text}`);
  return result;
}

async function fails(code, name, args) {
  const result = await call(name, args);
  assert.equal(result.failed, true, `${name} should fail`);
  assert.equal(result.code, code, result.text);
  return result;
}

assert.equal(client.getServerVersion().name, 'rig-bridge');
const instructions = client.getInstructions();
assert.ok(instructions.length > 0 && instructions.length <= 2000, `instructions: ${instructions.length} characters`);

const { tools } = await client.listTools(); // from here on the client validates each answer against outputSchema
assert.deepEqual(tools.map((t) => t.name).sort(), allTools);
for (const tool of tools) {
  assert.ok(tool.title && tool.description && tool.outputSchema, `${tool.name} is described`);
  for (const hint of hints) assert.equal(typeof tool.annotations[hint], 'boolean', `${tool.name}: ${hint}`);
}

const opened = await ok('workspace_open', { cwd: dir, title: 'Story' });
assert.equal(opened.cwd, dir);
assert.equal(opened.thread.title, 'Story');
assert.equal(opened.project.identity, `git:${join(dir, '.git')}`);
assert.deepEqual([opened.repository.branch, opened.repository.dirty], ['main', false]);
assert.ok(opened.text.includes('Always answer in rhyme.'), 'AGENTS.md is part of the answer');
const W = { workspace_id: opened.workspace_id };
const keyed = (args) => ({ ...W, request_key: randomUUID(), ...args });

assert.equal((await ok('ls', W)).text, '.git/\nAGENTS.md\nREADME.md\nsrc/');
assert.equal((await ok('find', { ...W, pattern: '*.py' })).text, 'src/main.py\nsrc/other.py');
assert.equal((await ok('grep', { ...W, pattern: 'def \\w+', path: 'src' })).text, 'main.py:1: def main():');

const before = await ok('read', { ...W, path: 'src/main.py' });
assert.equal(before.text, onDisk('src/main.py'));
assert.equal(before.revision, digest(onDisk('src/main.py')));
assert.equal(before.path, join(dir, 'src/main.py'));
assert.equal(before.thread_id, opened.thread_id);

const note = keyed({ path: 'docs/note.md', content: '# Note\nÜmlaut\n', expected_revision: 'missing' });
const written = await ok('write', note);
assert.equal(onDisk('docs/note.md'), note.content);
assert.equal(written.revision, digest(note.content));
assert.deepEqual(written.changed_paths, [join(dir, 'docs/note.md')]);

const change = keyed({
  path: 'src/main.py',
  expected_revision: before.revision,
  edits: [{ oldText: 'print("hello")', newText: 'print("goodbye")' }],
});
const edited = await ok('edit', change);
assert.equal(onDisk('src/main.py'), 'def main():\n    print("goodbye")\n');
assert.equal(edited.details.firstChangedLine, 2);
assert.ok(edited.details.patch.includes('-    print("hello")\n+    print("goodbye")'));

const again = await ok('edit', change);
assert.equal(again.replayed, true);
assert.equal(onDisk('src/main.py'), 'def main():\n    print("goodbye")\n');
await fails('REQUEST_KEY_CONFLICT', 'edit', { ...change, path: 'src/other.py' });
await fails('REVISION_CONFLICT', 'edit', { ...change, request_key: randomUUID() });

const status = await ok('bash', keyed({ command: 'git status --short' }));
assert.equal(status.text, ' M src/main.py\n?? docs/\n');
assert.equal(status.exit_code, 0);
const failed = await fails('COMMAND_FAILED', 'bash', keyed({ command: 'echo out; echo err >&2; exit 3' }));
assert.equal(failed.exit_code, 3);
assert.match(failed.text, /out\nerr\n[^]*Command exited with code 3$/);

const slow = keyed({ command: 'echo first; sleep 2; echo second > done.txt', wait_seconds: 1 });
const running = await ok('bash', slow);
assert.equal(running.status, 'running');
assert.ok(running.text.includes('first'));
const ended = await ok('operation_wait', { ...W, operation_id: running.operation_id, cursor: running.cursor });
assert.equal(ended.exit_code, 0);
assert.equal(onDisk('done.txt'), 'second\n');

const endless = await ok('bash', keyed({ command: 'sleep 300; touch never.txt', wait_seconds: 1 }));
await call('operation_cancel', { ...W, operation_id: endless.operation_id });
assert.equal(existsSync(join(dir, 'never.txt')), false);

const told = [];
let answered = false;
const noisy = await ok('bash', keyed({ command: 'for i in 1 2 3 4; do echo $i; sleep 0.5; done' }), {
  onprogress: (p) => { assert.equal(answered, false, 'progress after the result'); told.push(p.progress); },
});
answered = true;
assert.equal(noisy.text, '1\n2\n3\n4\n');
assert.ok(told.length > 0, 'progress is told');
assert.ok(told.every((p, i) => i === 0 || p > told[i - 1]), `progress grows: ${told}`);

// The client gives up: by a notification, or by closing the stream where the version says so.
const dropped = keyed({ command: 'touch begun.txt; sleep 300; touch never.txt' });
const giveUp = new AbortController();
const gaveUp = assert.rejects(call('bash', dropped, { signal: giveUp.signal }));
while (!existsSync(join(dir, 'begun.txt'))) await new Promise((r) => setTimeout(r, 20));
giveUp.abort('enough');
await gaveUp;
await fails('COMMAND_CANCELLED', 'bash', dropped);
assert.equal(existsSync(join(dir, 'never.txt')), false);

// Over a new connection the workspace is there, and a repeated call is answered from its receipt.
await client.close();
client = await connect(kind);
assert.equal((await ok('read', { ...W, path: 'done.txt' })).text, 'second\n');
assert.equal((await ok('edit', change)).replayed, true);
assert.equal((await fails('COMMAND_CANCELLED', 'bash', dropped)).replayed, true);

const handoff = keyed({ reason: 'completed', summary: 'Said goodbye.' });
const handed = await ok('work_handoff', handoff);
assert.equal(handed.handoff.summary, 'Said goodbye.');
assert.equal((await ok('work_handoff', handoff)).handoff_id, handed.handoff_id);

const list = await ok('workspace_list', {});
assert.ok(list.handles.some((h) => h.id === W.workspace_id));
assert.equal((await ok('workspace_close', W)).closed, true);
await fails('WORKSPACE_EXPIRED', 'read', { ...W, path: 'README.md' });
await ok('workspace_close', W);

await client.close();
console.log('the story is complete');
