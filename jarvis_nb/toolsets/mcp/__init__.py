"""MCP both ways: a server's tools as a source, and a toolset as a server. Needs the extra ``mcp``."""

from jarvis_nb.toolsets.mcp.serve import aserve, mcp_server, serve
from jarvis_nb.toolsets.mcp.source import MCPSource

__all__ = ["MCPSource", "aserve", "mcp_server", "serve"]
