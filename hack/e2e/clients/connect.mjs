// connect opens one of the public TypeScript clients: "v1" and "v2" speak the protocol versions with a
// handshake, "v2-modern" the one without; those that end in "-stdio" start the server themselves.

const clientInfo = { name: 'rig-bridge-story', version: '1.0.0' };

export async function connect(kind) {
  if (kind === 'v1' || kind === 'v1-stdio') {
    const { Client } = await import('@modelcontextprotocol/sdk/client/index.js');
    const client = new Client(clientInfo);
    await client.connect(kind === 'v1' ? await httpV1() : await stdioV1());
    return client;
  }
  const { Client, StreamableHTTPClientTransport } = await import('@modelcontextprotocol/client');
  const modern = kind.startsWith('v2-modern');
  const client = new Client(clientInfo, modern ? { versionNegotiation: { mode: 'auto' } } : {});
  const http = () => new StreamableHTTPClientTransport(endpoint(), { requestInit: authorized() });
  await client.connect(kind.endsWith('-stdio') ? stdio(await import('@modelcontextprotocol/client/stdio')) : http());
  if (modern && client.getNegotiatedProtocolVersion() !== '2026-07-28') {
    throw new Error(`negotiated ${client.getNegotiatedProtocolVersion()}`);
  }
  return client;
}

const endpoint = () => new URL(process.env.MCP_URL);
const authorized = () => ({ headers: { Authorization: process.env.MCP_AUTHORIZATION } });

async function httpV1() {
  const { StreamableHTTPClientTransport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js');
  return new StreamableHTTPClientTransport(endpoint(), { requestInit: authorized() });
}

const stdioV1 = async () => stdio(await import('@modelcontextprotocol/sdk/client/stdio.js'));

function stdio({ StdioClientTransport }) {
  const [command, ...args] = JSON.parse(process.env.MCP_COMMAND);
  return new StdioClientTransport({ command, args, env: process.env });
}
