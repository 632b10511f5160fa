// What the test page needs of the protocol and of the contract with the host.
export type { AgentEventParams, Item, Snapshot } from "../../../protocol/generated/kode.ts";
export type { HostState } from "../../../editors/vscode/src/shared/messages.ts";
