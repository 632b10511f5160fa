// The rows of a transcript: one for each item that shows something, and one for each run of looks at files.
//
// Rule: rows of a page are kept as long as the page is, so a piece of text makes the rows of one page anew.

import type { Item, ToolCall } from "kode-protocol";

import type { Transcript } from "./transcript.ts";

/** A row of the list. */
export type Row =
    | { readonly kind: "item"; readonly key: string; readonly item: Item }
    | { readonly kind: "looks"; readonly key: string; readonly items: readonly Item[] };

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
