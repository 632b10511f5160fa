// The completions at the cursor of the prompt.
//
// Rule: the server completes; here is only decided when to ask. An answer that comes after the text has changed is dropped.

import type { CompletionItem, InputPart } from "kode-protocol";
import { useEffect, useRef, useState } from "preact/hooks";

import type { App } from "../app/app.ts";

/** A name after `@` that is being written, or a command at the beginning. */
const AT_CURSOR = /(?:^|[\s(])@(?:"[^"\n]*|[^\s]*)$|^\/[^\s]*$/;

/** A symbol that is being named. */
const SYMBOL_AT_CURSOR = /(?:^|[\s(])(@#[^\s#]*)$/;

/** Something to choose: what the server offers, or a symbol, which goes along as a part. */
export interface Suggestion extends Omit<CompletionItem, "kind"> {
    readonly kind: CompletionItem["kind"] | "symbol";
    readonly part?: InputPart;
}

/** An open completion. */
export interface Completion {
    readonly result: { readonly start: number; readonly items: readonly Suggestion[] };
    readonly chosen: number;
    /** The text and the cursor that it is for. */
    readonly text: string;
    readonly cursor: number;
}

/** The completion of a prompt, and what can be done with it. */
export type CompletionState = ReturnType<typeof useCompletion>;

/** Completion of a prompt. */
export function useCompletion(app: App) {
    const [open, setOpen] = useState<Completion>();
    const running = useRef<AbortController | undefined>(undefined);
    const close = () => {
        running.current?.abort();
        running.current = undefined;
        setOpen(undefined);
    };
    const ask = (text: string, cursor: number) => {
        running.current?.abort();
        if (!AT_CURSOR.test(text.slice(0, cursor))) {
            setOpen(undefined);
            return;
        }
        const abort = new AbortController();
        running.current = abort;
        suggest(app, text, cursor, abort.signal).then(
            (result) => {
                if (abort.signal.aborted) return;
                setOpen(result.items.length > 0 ? { result, chosen: 0, text, cursor } : undefined);
            },
            (error) => {
                if (!abort.signal.aborted) app.fail(error);
            },
        );
    };
    const move = (step: number) =>
        setOpen(
            (now) =>
                now && {
                    ...now,
                    chosen: (now.chosen + step + now.result.items.length) % now.result.items.length,
                },
        );
    const point = (chosen: number) => setOpen((now) => now && { ...now, chosen });
    useEffect(() => close, []);
    return { open, ask, close, move, point };
}

/** Whether a command is there whole already, so that choosing it would only add a space. */
export function isWholeCommand(completion: Completion): boolean {
    const choice = completed(completion, completion.chosen);
    return completion.text.startsWith("/") && choice?.text.trimEnd() === completion.text;
}

/** The text and the cursor after something was chosen. */
export function completed(
    completion: Completion,
    index: number,
): { text: string; cursor: number; goesOn: boolean; part?: InputPart } | undefined {
    const item = completion.result.items[index];
    if (!item) return undefined;
    const { part } = item;
    const goesOn = item.kind === "folder";
    const insert = goesOn || item.insertText.endsWith(" ") ? item.insertText : `${item.insertText} `;
    const before = completion.text.slice(0, completion.result.start);
    const after = completion.text.slice(completion.cursor).replace(/^ /, "");
    const text = before + insert + after;
    return { text, cursor: before.length + insert.length, goesOn, ...(part ? { part } : {}) };
}

/** Asks the server, or the editor for symbols. */
async function suggest(app: App, text: string, cursor: number, signal: AbortSignal): Promise<Completion["result"]> {
    const named = SYMBOL_AT_CURSOR.exec(text.slice(0, cursor))?.[1];
    if (named === undefined) {
        const sessionId = app.state.active;
        const params = { text, cursor, ...(sessionId === undefined ? {} : { sessionId }) };
        return app.host.request("agent/complete", params, signal);
    }
    const { symbols } = await app.host.act("findSymbols", { query: named.slice(2) });
    const items = symbols.map(({ name, detail, uri, range }): Suggestion => ({
        kind: "symbol",
        label: name,
        insertText: name,
        detail,
        part: { type: "symbol", name, uri, range },
    }));
    return { start: cursor - named.length, items };
}
