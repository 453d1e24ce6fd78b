/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MCP_MCP_H
#define MCP_MCP_H

/* `scry mcp`: the words after it. Serves the Model Context Protocol on stdin and stdout until stdin ends (docs/agents.md); gives the exit
 * status. Everything else goes to stderr. */
int mcp_main(int argc, char **argv);

#endif
