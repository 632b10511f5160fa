// The arguments of a call whose proposal the user has edited.
//
// Rule: the passage that is replaced occurs once in the text it is searched in, and is as short as that allows.

/** Tools whose proposals can be edited. */
const EDITABLE = new Set(["Edit", "MultiEdit", "Write"]);

/** Whether the arguments of a tool can say what the user has made of its proposal. */
export function isEditable(tool: string): boolean {
    return EDITABLE.has(tool);
}

/** The arguments that make `wanted` of `current`; undefined for a tool that cannot, and where there is nothing to change. */
export function inputFor(tool: string, input: unknown, current: string, wanted: string): unknown {
    if (!isEditable(tool) || typeof input !== "object" || input === null) return undefined;
    if (tool === "Write") return { ...input, content: wanted };
    const passage = replacement(unified(current), unified(wanted));
    if (!passage) return undefined;
    const { before, after } = passage;
    if (tool === "MultiEdit") return { ...input, edits: [{ old_string: before, new_string: after }] };
    return { ...input, old_string: before, new_string: after, replace_all: false };
}

/** A passage and what takes its place. */
interface Replacement {
    readonly before: string;
    readonly after: string;
}

/** The lines that differ, with as many of their neighbours as make the passage unique; undefined where no line differs. */
export function replacement(current: string, wanted: string): Replacement | undefined {
    if (current === wanted) return undefined;
    const [old, now] = [lines(current), lines(wanted)];
    const shorter = Math.min(old.length, now.length);
    let head = 0;
    while (head < shorter && old[head] === now[head]) head += 1;
    let tail = 0;
    while (tail < shorter - head && old.at(-1 - tail) === now.at(-1 - tail)) tail += 1;
    for (;;) {
        const before = old.slice(head, old.length - tail).join("");
        if (before !== "" && current.indexOf(before) === current.lastIndexOf(before)) {
            return { before, after: now.slice(head, now.length - tail).join("") };
        }
        if (head === 0 && tail === 0) return { before: current, after: wanted };
        head = Math.max(0, head - 1);
        tail = Math.max(0, tail - 1);
    }
}

/** Lines with their ends. */
function lines(text: string): string[] {
    return text.match(/[^\n]*\n|[^\n]+$/g) ?? [];
}

function unified(text: string): string {
    return text.replaceAll("\r\n", "\n");
}
