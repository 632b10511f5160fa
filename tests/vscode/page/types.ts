// The parts of the protocol and of the host's contract that the test page needs.
export type { AgentEventParams, Item, Snapshot } from "../../../protocol/generated/kode.ts";
export type { HostState } from "../../../editors/vscode/src/shared/messages.ts";
