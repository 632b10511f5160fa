// Small parts of the rows of calls: titles, states, times.
//
// Rule: a title is text of the server and is shown exactly; code in it is code, and paths are relative to the workspace.

import type { Item, ToolCall } from "kode-protocol";
import { useEffect, useState } from "preact/hooks";

import { useSelect } from "../app/context.ts";
import { exactLine, relativePaths, span } from "../text.ts";

/** The item of a call. */
export type CallItem = Item & { body: { type: "toolCall" } & ToolCall };

/** A verb before a command or a query between backquotes. */
const VERB_AND_CODE = /^(\S[^`]{0,40}?) ?`([\s\S]*)`([^`]{0,60})$/;

/** A verb before one path, which has a folder or an extension and no spaces. */
const VERB_AND_PATH = /^(Edit|Write|Create|Read|Delete|List) ((?:[^\s`]*\/)?[^\s`/]+\/?)$/;

/** The title of a call; with `asks`, as a question. */
export function CallTitle({ text, asks = false }: { text: string; asks?: boolean }) {
    const folders = useSelect((state) => state.host?.folders);
    const line = relativePaths(exactLine(text), folders ?? []);
    const mark = asks ? "?" : "";
    const code = VERB_AND_CODE.exec(line);
    if (code)
        return (
            <bdi>
                {code[1]} <code class="title-code">{code[2]}</code>
                {code[3]}
                {mark}
            </bdi>
        );
    const path = VERB_AND_PATH.exec(line);
    if (!path) return <bdi>{`${line}${mark}`}</bdi>;
    const [, verb, whole = ""] = path;
    const cut = whole.replace(/\/$/, "").lastIndexOf("/") + 1;
    return (
        <>
            {verb} <bdi class="title-name">{`${whole.slice(cut)}${mark}`}</bdi>
            {cut > 0 && <bdi class="title-folder">{whole.slice(0, cut - 1)}</bdi>}
        </>
    );
}

/** The tools that change a file, in words. */
const CHANGES: Partial<Record<string, string>> = { Edit: "Edit", MultiEdit: "Edit", NotebookEdit: "Edit", Write: "Write" };

/** The title of a call: that of the server; for a change that failed before it had one, the file that it names. */
export function titleOf({ title, name, input }: ToolCall): string {
    const verb = CHANGES[name];
    if (verb === undefined || (title !== "" && title !== name)) return title || name;
    const { file_path, notebook_path } = (input ?? {}) as { file_path?: unknown; notebook_path?: unknown };
    const path = file_path ?? notebook_path;
    return typeof path === "string" ? `${verb} ${path}` : verb;
}

/** The end of the row of a call. */
export function Aside({ call }: { call: ToolCall }) {
    const exit = (call.structured as { exitCode?: number | null } | undefined)?.exitCode;
    return (
        <>
            {STATES[call.state] !== undefined && <span class="state">{STATES[call.state]}</span>}
            {typeof exit === "number" && exit !== 0 && <span class="state">exit {exit}</span>}
            <Duration call={call} />
        </>
    );
}

function Duration({ call }: { call: ToolCall }) {
    const running = call.state === "EXECUTING";
    const [, tick] = useState(0);
    useEffect(() => {
        if (!running) return undefined;
        const timer = setInterval(() => tick((count) => count + 1), 1_000);
        return () => clearInterval(timer);
    }, [running]);
    const text = durationOf(call);
    return text === "" ? null : <span class="duration">{text}</span>;
}

/** How long a call took or has run so far; empty below a tenth of a second. */
export function durationOf(call: ToolCall): string {
    if (call.startedAt === undefined) return "";
    if (call.endedAt === undefined && call.state !== "EXECUTING") return "";
    const end = call.endedAt === undefined ? Date.now() : Date.parse(call.endedAt);
    const passed = end - Date.parse(call.startedAt);
    return passed < 100 ? "" : span(passed);
}

export type Tone = "plain" | "failed" | "warning" | "running";

/** The emphasis of a call. */
export function toneOf(call: ToolCall): Tone {
    switch (call.state) {
        case "EXECUTING":
            return "running";
        case "FAILED":
            return "failed";
        case "DENIED":
        case "SEALED":
        case "APPROVAL_REQUIRED":
            return "warning";
        default:
            return "plain";
    }
}

/** Whether a call has ended, in whichever way. */
export function isOver(call: ToolCall): boolean {
    return call.state === "COMPLETED" || call.state === "FAILED" || call.state === "DENIED" || call.state === "SEALED";
}

const STATES: Partial<Record<ToolCall["state"], string>> = {
    APPROVAL_REQUIRED: "waits for you",
    DENIED: "denied",
    FAILED: "failed",
    SEALED: "interrupted",
};
