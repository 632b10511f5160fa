// All sessions, grouped by day: what they do, a search through them, and what can be done with each.
//
// Rule: titles and snippets are shown exactly. Arrow keys move between the search field and the sessions.

import type { SessionHit, SessionSummary } from "kode-protocol";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { App } from "../app/app.ts";
import { useApp, useSelect } from "../app/context.ts";
import { archive, exportSession, moreOfList, remove, rename, searchSessions, showArchived } from "../app/list.ts";
import { fork, showNewSession, showSession } from "../app/sessions.ts";
import { byDay } from "../days.ts";
import { ago, exactLine } from "../text.ts";
import { IconAct } from "./IconAct.tsx";
import { SessionLink } from "./SessionLink.tsx";

export function Sessions() {
    const app = useApp();
    const list = useSelect((state) => state.list);
    const search = useRef<HTMLInputElement>(null);
    // Before the next key can come.
    useLayoutEffect(() => search.current?.focus(), []);
    const query = list.query.trim().toLowerCase();
    const shown = list.sessions.filter((session) => session.title.toLowerCase().includes(query));
    const known = new Set(shown.map((session) => session.sessionId));
    const hits = list.hits.filter((hit) => !(hit.kind === "title" && known.has(hit.sessionId)));
    return (
        <section class="sessions" aria-label="All sessions" onKeyDown={(event) => onKey(app, event, search.current)}>
            <div class="sessions-head">
                <input
                    ref={search}
                    type="search"
                    class="search"
                    placeholder="Search sessions"
                    title="Searches titles, prompts and answers"
                    aria-label="Search sessions"
                    value={list.query}
                    onInput={(event) => searchSessions(app, event.currentTarget.value)}
                />
                <button
                    type="button"
                    class="quiet"
                    aria-pressed={list.archived}
                    onClick={() => showArchived(app, !list.archived)}
                >
                    Archived
                </button>
                <IconAct icon="add" label="New session" onClick={() => showNewSession(app)} />
                <IconAct icon="close" label="Close" onClick={() => leave(app)} />
            </div>
            {byDay(shown, Date.now()).map(({ label, sessions }) => (
                <section key={label} class="session-group" aria-label={label}>
                    <h2 class="section-title">{label}</h2>
                    <ul class="session-list">
                        {sessions.map((session) => (
                            <SessionRow key={session.sessionId} session={session} />
                        ))}
                    </ul>
                </section>
            ))}
            {shown.length === 0 && hits.length === 0 && (
                <p class="hint centered">{list.busy ? "Loading…" : query === "" ? "No sessions yet." : "No results."}</p>
            )}
            {list.cursor !== undefined && query === "" && (
                <button type="button" class="quiet centered" onClick={() => void moreOfList(app)}>
                    Show more
                </button>
            )}
            {hits.length > 0 && (
                <section class="session-group" aria-label="In prompts and answers">
                    <h2 class="section-title">In prompts and answers</h2>
                    <ul class="session-list">
                        {hits.map((hit, index) => (
                            <Hit key={index} hit={hit} />
                        ))}
                    </ul>
                </section>
            )}
        </section>
    );
}

function leave(app: App): void {
    app.set({ listOpen: false });
    app.focus.get("prompt")?.();
}

function onKey(app: App, event: KeyboardEvent, search: HTMLInputElement | null): void {
    if (event.key === "Escape") {
        event.stopPropagation();
        leave(app);
        return;
    }
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const list = (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>(".session-open:enabled");
    const stops = search ? [search, ...list] : [...list];
    const row = document.activeElement?.closest(".session")?.querySelector<HTMLElement>(".session-open");
    const at = stops.indexOf(row ?? (document.activeElement as HTMLElement));
    const next = stops[at + (event.key === "ArrowDown" ? 1 : -1)];
    if (at < 0 || !next) return;
    event.preventDefault();
    next.focus();
}

function SessionRow({ session }: { session: SessionSummary }) {
    const active = useSelect((state) => state.active);
    const [renaming, setRenaming] = useState(false);
    if (renaming) return <Renaming session={session} onClose={() => setRenaming(false)} />;
    return (
        <li class={session.sessionId === active ? "session active" : "session"}>
            <SessionLink session={session} />
            <SessionActs session={session} onRename={() => setRenaming(true)} />
        </li>
    );
}

function SessionActs({ session, onRename }: { session: SessionSummary; onRename: () => void }) {
    const app = useApp();
    const { sessionId, state, archived } = session;
    const name = exactLine(session.title) || "New session";
    const isUnreadable = state === "unreadable";
    const isElsewhere = state === "elsewhere";
    return (
        <span class="session-acts">
            <IconAct icon="edit" label={`Rename ${name}`} disabled={isElsewhere || isUnreadable} onClick={onRename} />
            <IconAct icon="fork" label={`Fork ${name}`} disabled={isUnreadable} onClick={() => void fork(app, sessionId)} />
            <IconAct
                icon="export"
                label={`Export ${name}`}
                disabled={isUnreadable}
                onClick={() => void exportSession(app, sessionId)}
            />
            <IconAct
                icon="archive"
                label={`${archived ? "Unarchive" : "Archive"} ${name}`}
                disabled={isElsewhere || isUnreadable}
                onClick={() => void archive(app, sessionId, !archived)}
            />
            <IconAct
                icon="trash"
                label={`Delete ${name}`}
                disabled={isElsewhere}
                onClick={() => void remove(app, sessionId, name)}
            />
        </span>
    );
}

function Renaming({ session, onClose }: { session: SessionSummary; onClose: () => void }) {
    const app = useApp();
    const [title, setTitle] = useState(session.title);
    const save = () => {
        onClose();
        const text = title.trim().slice(0, 200);
        if (text !== "" && text !== session.title) void rename(app, session.sessionId, text);
    };
    return (
        <li class="session renaming">
            <input
                type="text"
                class="search"
                aria-label="Title"
                value={title}
                maxLength={200}
                ref={(element) => {
                    if (element && document.activeElement !== element) element.focus();
                }}
                onInput={(event) => setTitle(event.currentTarget.value)}
                onKeyDown={(event) => {
                    if (event.key === "Enter" && !event.isComposing) save();
                    else if (event.key === "Escape") onClose();
                    else return;
                    event.preventDefault();
                    event.stopPropagation();
                }}
                onBlur={save}
            />
        </li>
    );
}

function Hit({ hit }: { hit: SessionHit }) {
    const app = useApp();
    return (
        <li class="session">
            <button type="button" class="session-open" onClick={() => void showSession(app, hit.sessionId)}>
                <span class="session-title">
                    <bdi>{exactLine(hit.title) || "New session"}</bdi>
                    {hit.writtenAt !== undefined && <span class="session-time">{ago(hit.writtenAt, Date.now())}</span>}
                </span>
                <span class="session-detail">
                    {exactLine(hit.snippet.slice(0, hit.start))}
                    <mark>{exactLine(hit.snippet.slice(hit.start, hit.end))}</mark>
                    {exactLine(hit.snippet.slice(hit.end))}
                </span>
            </button>
        </li>
    );
}
