// The link targets that a page may open.
//
// Rule: an allow-list of schemes; texts of the model choose none.

const EXTERNAL = new Set(["http", "https", "mailto"]);
const INTERNAL = new Set(["file", "untitled", "kode-baseline", "kode-proposed"]);

/** The scheme of a URI in lower case, empty when it has none. */
function schemeOf(uri: string): string {
    return /^([a-z][a-z0-9+.-]*):/i.exec(uri)?.[1]?.toLowerCase() ?? "";
}

/** Whether it may be opened outside of the editor. */
export function isExternal(href: string): boolean {
    return EXTERNAL.has(schemeOf(href));
}

/** Whether it may be opened as a document. */
export function isDocument(uri: string): boolean {
    return INTERNAL.has(schemeOf(uri));
}
