// Opening what the transcript names.
//
// Rule: only an act of the user opens anything, and only by the host, which checks what it is given.

import { fileLocation, type LinkTarget } from "../markdown/links.ts";
import type { App } from "./app.ts";

/** Follows a link. */
export async function openTarget(app: App, target: LinkTarget): Promise<void> {
    await app.attempt(async () => {
        if (target.kind === "web") {
            await app.host.act("openLink", { href: target.href });
            return;
        }
        const location = fileLocation(target, app.state.host?.folders[0]?.uri);
        if (!location) throw new Error(`${target.path} is not a file of this workspace.`);
        await app.host.act("openFile", location);
    });
}

/** Opens a file of the workspace at a line, from 1. */
export function openPath(app: App, path: string, line: number): Promise<void> {
    return openTarget(app, { kind: "file", path, line });
}
