// A text that grows, cut into its top-level blocks, so that only the last one is rendered again.
//
// Rule: a block is cut off only when another one follows it; no more text can change it then, but for link
// definitions, which models do not write behind their use. Cut text is never checked again.

import { blockStarts } from "./render.ts";

/** A text in blocks. */
export interface Blocks {
    /** Blocks that are done, in order. */
    readonly closed: readonly string[];
    /** The rest, to which more may come. */
    readonly open: string;
    /** How much of the text is in the closed blocks. */
    readonly length: number;
}

/** A text without blocks. */
export const NO_BLOCKS: Blocks = { closed: [], open: "", length: 0 };

/** Cuts a text, continuing from how the beginning of it was cut; a text that is another one is cut again. */
export function cutBlocks(before: Blocks, previous: string, text: string): Blocks {
    const base = text.startsWith(previous) ? before : NO_BLOCKS;
    const open = text.slice(base.length);
    if (!open.includes("\n")) return { ...base, open };
    const starts = blockStarts(open);
    const last = starts.at(-1);
    if (last === undefined || last === 0) return { ...base, open };
    const offsets = lineOffsets(open);
    const cuts = starts.map((line) => offsets[line] ?? open.length);
    const pieces = cuts.slice(0, -1).map((cut, index) => open.slice(index === 0 ? 0 : cut, cuts[index + 1]));
    const length = base.length + (cuts.at(-1) ?? 0);
    return { closed: [...base.closed, ...pieces], open: text.slice(length), length };
}

/** The content and the language of a fence that makes up a whole open block; undefined for any other block. */
export function openFence(block: string): { info: string; code: string } | undefined {
    const head = /^(?: {0,3})(`{3,}|~{3,})([^\n]*)\n/.exec(block);
    const mark = head?.[1];
    if (!head || mark === undefined || (mark.startsWith("`") && head[2]?.includes("`"))) return undefined;
    const rest = block.slice(head[0].length);
    const end = new RegExp(`^ {0,3}\\${mark[0] ?? ""}{${mark.length},}[ \\t]*$`, "m").exec(rest);
    if (end && rest.slice(end.index + end[0].length).trim() !== "") return undefined;
    return { info: head[2] ?? "", code: end ? rest.slice(0, end.index) : rest };
}

function lineOffsets(text: string): number[] {
    const offsets = [0];
    for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) offsets.push(at + 1);
    return offsets;
}
