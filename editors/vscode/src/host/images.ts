// Images of the workspace, for the page.
//
// Rule: only files in a workspace folder, of the types that a browser draws, and of a bounded size. An SVG is drawn as an image, in
// which nothing runs.

import * as vscode from "vscode";

const TYPES: Record<string, string> = {
    png: "image/png",
    jpg: "image/jpeg",
    jpeg: "image/jpeg",
    gif: "image/gif",
    webp: "image/webp",
    avif: "image/avif",
    bmp: "image/bmp",
    svg: "image/svg+xml",
};

/** The largest image, in bytes. */
const LARGEST = 4_000_000;

/** An image as a data URL; undefined where it may not or cannot be shown. */
export async function imageOf(uri: vscode.Uri): Promise<string | undefined> {
    const type = TYPES[uri.path.split(".").at(-1)?.toLowerCase() ?? ""];
    if (type === undefined || !vscode.workspace.getWorkspaceFolder(uri)) return undefined;
    const { size, type: kind } = await vscode.workspace.fs.stat(uri);
    // A link may lead out of the workspace.
    if (size > LARGEST || kind !== vscode.FileType.File) return undefined;
    const bytes = await vscode.workspace.fs.readFile(uri);
    return `data:${type};base64,${Buffer.from(bytes).toString("base64")}`;
}
