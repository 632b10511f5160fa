// Text of others as it is safe to show: what could paint over it, turn it around or hide in it is made visible.
//
// Rule: every name, command line, path and output goes through `exact`, all prose through `prose`. Both only replace
// characters; neither makes HTML.

// C0 without tab and line feed, DEL and C1, soft hyphen, Arabic letter mark, zero-width and direction characters, line and
// paragraph separators, fillers, variation tags: none of them belongs into what a user judges by its looks.
const HIDDEN =
    // biome-ignore lint/suspicious/noMisleadingCharacterClass: single characters are meant, joiners among them
    /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0]|[\u{e0000}-\u{e007f}]/gu;

// In prose joiners and marks of direction are letters of many scripts; embedding, override and isolation are not.
const TURNING = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]|[\u{e0000}-\u{e007f}]/gu;

/** A text that must be seen exactly. */
export function exact(text: string): string {
    return text.replace(/\r\n?/g, "\n").replace(HIDDEN, named);
}

/** The same on one line. */
export function exactLine(text: string): string {
    return exact(text).replace(/\n+/g, " ⏎ ");
}

/** The beginning of an answer on one line, without the marks of Markdown. */
export function plainLine(markdown: string): string {
    const text = markdown
        .replace(/^ {0,3}(?:#{1,6}|>|[-*+]|\d+[.)]|`{3,}.*|~{3,}.*)(?: +|$)/gm, "")
        .replace(/!?\[([^\]]*)\]\([^)]*\)/g, "$1")
        .replace(/(\*\*|__|~~|`+)(?=\S)(.*?\S)\1/g, "$2");
    return exact(text).replace(/\s*\n\s*/g, " ").trim();
}

/** Words for people, in any script. */
export function prose(text: string): string {
    return text.replace(/\r\n?/g, "\n").replace(TURNING, named);
}

/** A text with the paths in it that lead into folders of the workspace made relative. */
export function relativePaths(text: string, folders: readonly { uri: string }[]): string {
    let shown = text;
    for (const { uri } of folders) {
        const folder = pathOf(uri);
        if (folder.length > 1) shown = shown.replaceAll(`${folder}/`, "");
    }
    return shown;
}

/** The path of a folder's URI, without a slash at its end. */
export function pathOf(uri: string): string {
    const path = uri.replace(/^file:\/\//, "").replace(/\/$/, "");
    try {
        return decodeURIComponent(path);
    } catch {
        // Not encoded as URIs are.
        return path;
    }
}

function named(character: string): string {
    return `⟨U+${(character.codePointAt(0) ?? 0).toString(16).toUpperCase().padStart(4, "0")}⟩`;
}

/** A number of tokens in few characters. */
export function tokens(count: number): string {
    if (count < 1_000) return String(count);
    if (count < 100_000) return `${(count / 1_000).toFixed(1).replace(/\.0$/, "")}k`;
    if (count < 1_000_000) return `${Math.round(count / 1_000)}k`;
    return `${(count / 1_000_000).toFixed(1).replace(/\.0$/, "")}M`;
}

/** A number of bytes in few characters. */
export function bytes(count: number): string {
    if (count < 1_024) return `${count} B`;
    if (count < 1_048_576) return `${(count / 1_024).toFixed(count < 10_240 ? 1 : 0)} KB`;
    return `${(count / 1_048_576).toFixed(1)} MB`;
}

/** An amount of money. */
export function dollars(amount: number): string {
    if (amount === 0) return "$0";
    return amount < 0.01 ? "< $0.01" : `$${amount.toFixed(2)}`;
}

/** A time span in few characters. */
export function span(milliseconds: number): string {
    const exactly = Math.max(0, milliseconds) / 1_000;
    if (exactly < 9.95) return `${exactly.toFixed(1)} s`;
    const seconds = Math.round(exactly);
    if (seconds < 60) return `${seconds} s`;
    const minutes = Math.floor(seconds / 60);
    if (minutes < 60) return `${minutes} min ${seconds % 60} s`;
    return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

/** How long ago something was, in words. */
export function ago(time: string, now: number): string {
    const minutes = Math.floor((now - Date.parse(time)) / 60_000);
    if (!(minutes >= 1)) return "now";
    if (minutes < 60) return `${minutes} min`;
    if (minutes < 1_440) return `${Math.floor(minutes / 60)} h`;
    return `${Math.floor(minutes / 1_440)} d`;
}

/** The time until a moment, in the largest unit that fits: `45 s`, `12 min`, `3 h`, `2 days`. */
export function until(time: string, now: number): string {
    const seconds = Math.max(0, Math.ceil((Date.parse(time) - now) / 1_000));
    if (seconds < 60) return `${seconds} s`;
    if (seconds < 3_600) return `${Math.ceil(seconds / 60)} min`;
    if (seconds < 172_800) return `${Math.ceil(seconds / 3_600)} h`;
    return counted(Math.ceil(seconds / 86_400), "day");
}

/** `1 file`, `2 files`. */
export function counted(count: number, one: string, many = `${one}s`): string {
    return `${count} ${count === 1 ? one : many}`;
}
