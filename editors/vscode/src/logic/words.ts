// Words of the server, the model and the file system, made safe to be in the editor's own messages.
//
// Rule: the editor reads links, commands and icons out of the texts of messages, status bar and quick picks; whatever is
// not ours passes through here first.

/** The longest text of a message. */
const LONGEST = 240;

const CONTROLS = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu;

/** As plain text on one line, in which nothing is a link, an icon or a direction mark. */
export function plain(text: string, longest = LONGEST): string {
    const line = text.replace(CONTROLS, " ").replace(/\s+/g, " ").trim();
    const cut = line.length > longest ? `${[...line].slice(0, longest - 1).join("")}…` : line;
    // `[label](target)` is a link, `$(name)` an icon.
    return cut.replaceAll("](", "] (").replaceAll("$(", "$ (");
}

/** “1 change”, “2 changes”. */
export function count(number: number, thing: string): string {
    return `${number} ${thing}${number === 1 ? "" : "s"}`;
}

/** An error and its next step, as a message of the editor. */
export function told(error: unknown): string {
    const hint = hintOf((error as { data?: { hint?: unknown } } | null | undefined)?.data);
    const message = messageOf(error);
    if (hint === "") return plain(message);
    return plain(`${message}${/[.!?]$/.test(message) ? "" : "."} ${hint}`);
}

/** The next step, for people: hints that name a method of the protocol are for programs. Empty for none. */
export function hintOf(data: { readonly hint?: unknown } | null | undefined): string {
    const hint = data?.hint;
    return typeof hint !== "string" || /\bagent\/[a-z]+/i.test(hint) ? "" : hint;
}

/** The text of an error of any type. */
export function messageOf(error: unknown): string {
    return error instanceof Error ? error.message : String(error);
}
