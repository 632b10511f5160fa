// The items of one transcript, oldest first, in pages that are shared between versions.
//
// Rule: values are never changed. A new version shares every page that did not change, so that what depends on a page can
// be kept by its identity, and a piece of text costs one page however long the conversation is.

import type { Item, ItemId } from "kode-protocol";

/** Items of a page. */
const PAGE = 64;

/** The most items that are kept; older ones are asked for again when the user scrolls there. */
export const MAX_ITEMS = 6_400;

/** A transcript as far as it is here. */
export interface Transcript {
    readonly pages: readonly (readonly Item[])[];
    /** How many items are in the pages. */
    readonly count: number;
    /** Whether there are older items. */
    readonly more: boolean;
}

/** A transcript without items. */
export const EMPTY: Transcript = { pages: [], count: 0, more: false };

/** Makes a transcript of items, oldest first. */
export function transcriptOf(items: readonly Item[], more: boolean): Transcript {
    return { pages: paged(items), count: items.length, more };
}

/** All items, oldest first. */
export function itemsOf(transcript: Transcript): Item[] {
    return transcript.pages.flat();
}

/** The newest item. */
export function newestItem(transcript: Transcript): Item | undefined {
    return transcript.pages.at(-1)?.at(-1);
}

/** The oldest item. */
export function oldestItem(transcript: Transcript): Item | undefined {
    return transcript.pages[0]?.[0];
}

/** Finds an item; from the end, because what happens, happens there. */
export function findItem(transcript: Transcript, id: ItemId): Item | undefined {
    const place = placeOf(transcript, id);
    return place && transcript.pages[place.page]?.[place.index];
}

/** Puts an item in the place of the one it is a newer form of, or at the end. */
export function putItem(transcript: Transcript, item: Item): Transcript {
    const place = placeOf(transcript, item.itemId);
    return place ? withItem(transcript, place, item) : appended(transcript, item);
}

/** Changes an item; the transcript stays as it is when the item is not in it. */
export function changeItem(transcript: Transcript, id: ItemId, change: (item: Item) => Item): Transcript {
    const place = placeOf(transcript, id);
    const item = place && transcript.pages[place.page]?.[place.index];
    return place && item ? withItem(transcript, place, change(item)) : transcript;
}

/** Takes an item and all after it away. An item that is older than all that are here takes them all. */
export function rewindTo(transcript: Transcript, id: ItemId): Transcript {
    const place = placeOf(transcript, id);
    if (!place) return transcript.more ? { pages: [], count: 0, more: true } : transcript;
    const kept = transcript.pages.slice(0, place.page);
    const head = transcript.pages[place.page]?.slice(0, place.index) ?? [];
    const pages = head.length > 0 ? [...kept, head] : kept;
    return { pages, count: counted(pages), more: transcript.more };
}

/** Puts a page of older items before all others. */
export function prependItems(transcript: Transcript, items: readonly Item[], more: boolean): Transcript {
    const known = oldestItem(transcript);
    const fresh = items.filter((item) => item.itemId !== known?.itemId);
    return { pages: [...paged(fresh), ...transcript.pages], count: transcript.count + fresh.length, more };
}

interface Place {
    page: number;
    index: number;
}

function placeOf(transcript: Transcript, id: ItemId): Place | undefined {
    for (let page = transcript.pages.length - 1; page >= 0; page -= 1) {
        const items = transcript.pages[page] ?? [];
        for (let index = items.length - 1; index >= 0; index -= 1) {
            if (items[index]?.itemId === id) return { page, index };
        }
    }
    return undefined;
}

function withItem(transcript: Transcript, place: Place, item: Item): Transcript {
    const page = (transcript.pages[place.page] ?? []).with(place.index, item);
    return { ...transcript, pages: transcript.pages.with(place.page, page) };
}

function appended(transcript: Transcript, item: Item): Transcript {
    const last = transcript.pages.at(-1);
    const pages =
        last && last.length < PAGE
            ? transcript.pages.with(-1, [...last, item])
            : [...transcript.pages, [item]];
    if (transcript.count < MAX_ITEMS) return { ...transcript, pages, count: transcript.count + 1 };
    const rest = pages.slice(1);
    return { pages: rest, count: counted(rest), more: true };
}

function paged(items: readonly Item[]): Item[][] {
    const pages: Item[][] = [];
    for (let start = 0; start < items.length; start += PAGE) pages.push(items.slice(start, start + PAGE));
    return pages;
}

function counted(pages: readonly (readonly Item[])[]): number {
    return pages.reduce((sum, page) => sum + page.length, 0);
}
