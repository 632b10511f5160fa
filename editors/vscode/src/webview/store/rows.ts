// The rows of a transcript: one for each item that shows something, one for each run of reads and searches, and one where a turn
// ended.
//
// Rule: rows of a page are kept as long as the page is, so a piece of text makes the rows of one page again.

import type { Item, ToolCall, TurnId } from "kode-protocol";

import type { Transcript } from "./transcript.ts";

/** A row of the list. */
export type Row =
    | { readonly kind: "item"; readonly key: string; readonly item: Item }
    | { readonly kind: "looks"; readonly key: string; readonly items: readonly Item[] }
    | { readonly kind: "end"; readonly key: string; readonly turn: TurnItems };

/** The summary of a turn from its items. */
export interface TurnItems {
    readonly turnId: TurnId;
    /** The prompt; absent where it is older than the items that are here. */
    readonly prompt?: Item;
    /** The last item. */
    readonly last: Item;
    /** The files that were changed, each once. */
    readonly files: readonly string[];
    /** The text of the last message. */
    readonly answer: string;
    /** Whether a tool was called. */
    readonly hasCalls: boolean;
    /** Whether no turn came after it. */
    readonly isLast: boolean;
}

const LOOKS = new Set(["Read", "Grep", "Glob", "LS", "Diagnostics"]);
const STANDS_OUT = new Set<ToolCall["state"]>(["FAILED", "DENIED", "APPROVAL_REQUIRED", "SEALED"]);

const pageRows = new WeakMap<readonly Item[], readonly Row[]>();

/** The rows of a transcript, oldest first. */
export function rowsOf(transcript: Transcript): readonly Row[] {
    const rows: Row[] = [];
    for (const page of transcript.pages) {
        let known = pageRows.get(page);
        if (!known) {
            known = joined(page.flatMap(rowOf));
            pageRows.set(page, known);
        }
        const [first, ...rest] = known;
        const last = rows.at(-1);
        if (first?.kind === "looks" && last?.kind === "looks") {
            rows[rows.length - 1] = { ...last, items: [...last.items, ...first.items] };
            rows.push(...rest);
        } else {
            rows.push(...known);
        }
    }
    return rows;
}

function rowOf(item: Item): Row[] {
    const { body } = item;
    const key = item.itemId;
    switch (body.type) {
        case "agentMessage":
        case "thinking":
            return body.text.trim() === "" && body.complete ? [] : [{ kind: "item", key, item }];
        case "toolCall":
            return LOOKS.has(body.name) && !STANDS_OUT.has(body.state)
                ? [{ kind: "looks", key, items: [item] }]
                : [{ kind: "item", key, item }];
        case "userMessage":
        case "notice":
        case "command":
            return [{ kind: "item", key, item }];
        default:
            // An item of a newer server.
            return [];
    }
}

function joined(rows: readonly Row[]): readonly Row[] {
    const result: Row[] = [];
    for (const row of rows) {
        const last = result.at(-1);
        if (row.kind === "looks" && last?.kind === "looks") {
            result[result.length - 1] = { ...last, items: [...last.items, ...row.items] };
        } else {
            result.push(row);
        }
    }
    return result;
}

/** The rows with one more where each turn ended; a turn that runs has not ended. */
export function withEnds(rows: readonly Row[], running: boolean): readonly Row[] {
    const all: Row[] = [];
    let first = 0;
    for (const [index, row] of rows.entries()) {
        if (index > first && beginsTurn(row)) {
            pushEnd(all, rows, first, index, false);
            first = index;
        }
        all.push(row);
    }
    if (!running) pushEnd(all, rows, first, rows.length, true);
    return all;
}

function beginsTurn(row: Row): boolean {
    return row.kind === "item" && row.item.body.type === "userMessage" && !row.item.body.steered;
}

/** The ends by the last row of their turns, so that a row is the same as long as its turn is. */
const knownEnds = new WeakMap<Row, Row>();

function pushEnd(all: Row[], rows: readonly Row[], first: number, end: number, isLast: boolean): void {
    const last = rows[end - 1];
    if (!last || (end - first === 1 && beginsTurn(last))) return;
    const known = knownEnds.get(last);
    if (known?.kind === "end" && known.turn.isLast === isLast) {
        all.push(known);
        return;
    }
    const turn = turnOf(rows.slice(first, end), isLast);
    if (!turn) return;
    const row: Row = { kind: "end", key: `end ${turn.turnId} ${turn.last.itemId}`, turn };
    knownEnds.set(last, row);
    all.push(row);
}

function turnOf(rows: readonly Row[], isLast: boolean): TurnItems | undefined {
    const items = rows.flatMap((row) => (row.kind === "item" ? [row.item] : row.kind === "looks" ? [...row.items] : []));
    const last = items.at(-1);
    // A command that is answered at once is no turn, and a notice alone has no answer.
    const bodies = items.map(({ body }) => body);
    if (!last || !bodies.some(({ type }) => type === "agentMessage" || type === "toolCall")) return undefined;
    const [first] = items;
    const files = bodies.flatMap((body) => (body.type === "toolCall" ? changedFile(body) : []));
    const answer = bodies.findLast((body) => body.type === "agentMessage");
    return {
        turnId: last.turnId,
        ...(first?.body.type === "userMessage" ? { prompt: first } : {}),
        last,
        files: [...new Set(files)],
        answer: answer?.type === "agentMessage" ? answer.text : "",
        hasCalls: bodies.some(({ type }) => type === "toolCall"),
        isLast,
    };
}

function changedFile(call: ToolCall): string[] {
    const result = call.structured as { path?: unknown; unified?: unknown } | undefined;
    return typeof result?.unified === "string" && typeof result.path === "string" ? [result.path] : [];
}
