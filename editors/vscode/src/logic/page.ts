// The document around a page of the chat, and what it may load.
//
// Rule: nothing runs or applies but our script and our style sheets, each by nonce; a module hands its nonce on to the chunks that
// it imports. No inline code or style, no connection, no frame, no form; images and fonts come from the extension or the page.

/** The places a page is made of, as the webview may ask for them. */
export interface PageParts {
    nonce: string;
    /** The webview's own source of resources. */
    source: string;
    script: string;
    style: string;
    title: string;
}

/** The policy, in the words of the header. */
export function policy(nonce: string, source: string): string {
    return [
        "default-src 'none'",
        `script-src 'nonce-${nonce}'`,
        `style-src 'nonce-${nonce}'`,
        `img-src ${source} data: blob:`,
        `font-src ${source}`,
        "connect-src 'none'",
        "frame-src 'none'",
        "form-action 'none'",
        "base-uri 'none'",
    ].join("; ");
}

const ENTITIES: Record<string, string> = { "&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;" };

/** The whole document. */
export function html(parts: PageParts): string {
    const attribute = (text: string) => text.replace(/[&"<>]/g, (character) => ENTITIES[character] ?? "");
    return `<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${attribute(policy(parts.nonce, parts.source))}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${attribute(parts.title)}</title>
<link rel="stylesheet" nonce="${parts.nonce}" href="${attribute(parts.style)}">
</head>
<body>
<div id="root"></div>
<script type="module" nonce="${parts.nonce}" src="${attribute(parts.script)}"></script>
</body>
</html>
`;
}
