// Images of the workspace in an answer, shown where the text names them.
//
// Rule: the host reads the file and decides whether it may be shown; an image of the web is never loaded.

import type { App } from "../app/app.ts";
import { fileLocation, targetOf } from "./links.ts";

/** The most images of a block that are shown. */
const MOST = 20;

/** Names of files that are images. */
export const IMAGE_NAME = /\.(?:png|jpe?g|gif|webp|avif|bmp|svg)$/i;

/** Shows the images that an element names. */
export function showImages(root: HTMLElement, app: App): void {
    const links = [...root.querySelectorAll<HTMLElement>("a.image:not(.shown)")].slice(0, MOST);
    for (const link of links) void show(link, app);
}

async function show(link: HTMLElement, app: App): Promise<void> {
    link.classList.add("shown");
    const target = targetOf(link);
    const location = target?.kind === "file" ? fileLocation(target, app.state.host?.folders[0]?.uri) : undefined;
    if (!location) return;
    try {
        const { url } = await app.host.act("readImage", { uri: location.uri });
        if (url === null || !link.isConnected) return;
        const image = document.createElement("img");
        image.alt = link.textContent ?? "";
        image.src = url;
        link.replaceChildren(image);
    } catch {
        // It cannot be read: the link stays, and says why when it is followed.
    }
}
