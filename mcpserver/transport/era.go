package transport

import (
	"net/http"

	"github.com/mark3labs/mcp-go/mcp"
)

// isModern tells whether a message belongs to the era without sessions and
// handshake. Header or body alone decide it; that they must agree is
// checkModern's to say.
func isModern(header http.Header, msg message) bool {
	return mcp.IsModernProtocol(msg.meta.ProtocolVersion()) || mcp.IsModernProtocol(header.Get(mcp.HeaderProtocolVersion))
}

// checkModern applies what 2026-07-28 demands of a POSTed request.
func (h *Handler) checkModern(header http.Header, msg message) *rpcError {
	said, meant := header.Get(mcp.HeaderProtocolVersion), msg.meta.ProtocolVersion()
	switch {
	case header.Get(mcp.HeaderLastEventID) != "":
		return badRequest(mcp.HEADER_MISMATCH, "Last-Event-ID is not supported: streams cannot be resumed, send the request again with a new id")
	case said == "":
		return badRequest(mcp.HEADER_MISMATCH, "The header %s is missing", mcp.HeaderProtocolVersion)
	case meant == "":
		return badRequest(mcp.INVALID_PARAMS, "_meta lacks %s", mcp.MetaKeyProtocolVersion)
	case said != meant:
		return badRequest(mcp.HEADER_MISMATCH, "The header %s says %q, _meta says %q", mcp.HeaderProtocolVersion, said, meant)
	}
	if err := checkModernMeta(msg); err != nil {
		return err
	}
	if err := mcp.ValidateStandardHeaders(header.Get, meant, mcp.MCPMethod(msg.method), msg.params); err != nil {
		return badRequest(mcp.HEADER_MISMATCH, "%s", err.Error())
	}
	return h.checkParamHeaders(header, msg)
}

// checkParamHeaders compares the arguments that a tool's schema marks with
// x-mcp-header with the headers that repeat them.
func (h *Handler) checkParamHeaders(header http.Header, msg message) *rpcError {
	if msg.call.Name == nil {
		return nil
	}
	listed := h.o.Server.GetTool(*msg.call.Name)
	if listed == nil {
		return nil
	}
	present := func(name string) (string, bool) {
		return header.Get(name), len(header.Values(name)) > 0
	}
	if err := mcp.ValidateParamHeadersLookup(present, &listed.Tool, msg.params); err != nil {
		return badRequest(mcp.HEADER_MISMATCH, "%s", err.Error())
	}
	return nil
}

// checkModernMeta applies the part that binds stdio as well.
func checkModernMeta(msg message) *rpcError {
	version := msg.meta.ProtocolVersion()
	if !mcp.IsValidProtocolVersion(version) {
		details := mcp.UnsupportedProtocolVersionError{Version: version, Supported: mcp.ValidProtocolVersions}.JSONRPCError().Error
		return &rpcError{status: http.StatusBadRequest, code: details.Code, message: details.Message, data: details.Data}
	}
	if msg.meta.ClientCapabilities() == nil {
		return badRequest(mcp.INVALID_PARAMS, "_meta lacks %s", mcp.MetaKeyClientCapabilities)
	}
	return nil
}

// checkLegacyVersion refuses a version header that names no known version. A
// missing header means 2025-03-26.
func checkLegacyVersion(header http.Header) *rpcError {
	if v := header.Get(mcp.HeaderProtocolVersion); v != "" && !mcp.IsValidProtocolVersion(v) {
		return badRequest(codeServer, "Unsupported protocol version %q; supported are %v", v, mcp.ValidProtocolVersions)
	}
	return nil
}

// batchesAllowed tells whether the version of a request still had batches.
func batchesAllowed(header http.Header) bool {
	return header.Get(mcp.HeaderProtocolVersion) < mcp.ProtocolVersion20250618
}

// modernStatus is the HTTP status that 2026-07-28 prescribes for an error.
func modernStatus(code int) int {
	switch code {
	case mcp.METHOD_NOT_FOUND:
		return http.StatusNotFound
	case mcp.HEADER_MISMATCH, mcp.MISSING_REQUIRED_CLIENT_CAPABILITY, mcp.UNSUPPORTED_PROTOCOL_VERSION,
		mcp.INVALID_REQUEST, mcp.INVALID_PARAMS, mcp.PARSE_ERROR:
		return http.StatusBadRequest
	default:
		return http.StatusOK
	}
}
