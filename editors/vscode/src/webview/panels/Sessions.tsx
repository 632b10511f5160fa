// All sessions: what they are doing, words to find them by, and what can be done with them.
//
// Rule: titles and snippets are words of others and are shown exactly. A session that cannot be read says why and can be deleted.

import type { SessionHit, SessionSummary } from "kode-protocol";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { useApp, useSelect } from "../app/context.ts";
import {
    archive,
    exportSession,
    moreOfList,
    remove,
    rename,
    searchSessions,
    showArchived,
} from "../app/list.ts";
import { fork, showSession } from "../app/sessions.ts";
import { ago, counted, dollars, exactLine } from "../text.ts";
import { Icon, type IconName, Spinner } from "./Icon.tsx";

export function Sessions() {
    const app = useApp();
    const list = useSelect((state) => state.list);
    const active = useSelect((state) => state.active);
    const search = useRef<HTMLInputElement>(null);
    // Before the next key can come.
    useLayoutEffect(() => search.current?.focus(), []);
    const query = list.query.trim().toLowerCase();
    const shown =
        query === ""
            ? list.sessions
            : list.sessions.filter((session) => session.title.toLowerCase().includes(query));
    const known = new Set(shown.map((session) => session.sessionId));
    const hits = list.hits.filter((hit) => !(hit.kind === "title" && known.has(hit.sessionId)));
    return (
        <section
            class="sessions"
            aria-label="All sessions"
            onKeyDown={(event) => {
                if (event.key !== "Escape") return;
                event.stopPropagation();
                app.set({ listOpen: false });
                app.focus.get("prompt")?.();
            }}
        >
            <div class="sessions-head">
                <input
                    ref={search}
                    type="search"
                    class="search"
                    placeholder="Search titles, prompts and answers"
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
            </div>
            <ul class="session-list">
                {shown.map((session) => (
                    <SessionRow
                        key={session.sessionId}
                        session={session}
                        isActive={session.sessionId === active}
                    />
                ))}
            </ul>
            {shown.length === 0 && hits.length === 0 && (
                <p class="hint centered">{list.busy ? "Looking…" : "No sessions here."}</p>
            )}
            {list.cursor !== undefined && query === "" && (
                <button type="button" class="quiet centered" onClick={() => void moreOfList(app)}>
                    Show more
                </button>
            )}
            {hits.length > 0 && (
                <>
                    <h2 class="section-title">Found in sessions</h2>
                    <ul class="session-list">
                        {hits.map((hit, index) => (
                            <Hit key={index} hit={hit} />
                        ))}
                    </ul>
                </>
            )}
        </section>
    );
}

function SessionRow({ session, isActive }: { session: SessionSummary; isActive: boolean }) {
    const app = useApp();
    const [title, setTitle] = useState<string>();
    const name = exactLine(session.title) || "New session";
    const { sessionId } = session;
    const isUnreadable = session.state === "unreadable";
    const isElsewhere = session.state === "elsewhere";
    if (title !== undefined) {
        const leave = () => setTitle(undefined);
        const save = () => {
            leave();
            if (title.trim() !== "" && title !== session.title)
                void rename(app, sessionId, title.trim().slice(0, 200));
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
                        else if (event.key === "Escape") leave();
                        else return;
                        event.preventDefault();
                        event.stopPropagation();
                    }}
                    onBlur={save}
                />
            </li>
        );
    }
    return (
        <li class={isActive ? "session active" : "session"}>
            <button
                type="button"
                class="session-open"
                aria-current={isActive}
                disabled={isUnreadable}
                onClick={() => void showSession(app, sessionId)}
            >
                <span class="session-title">
                    <StateMark session={session} />
                    <bdi>{name}</bdi>
                    <span class="session-time">{ago(session.updatedAt, Date.now())}</span>
                </span>
                <span class="session-detail">{detailOf(session)}</span>
            </button>
            <span class="session-acts">
                <Act
                    icon="edit"
                    label={`Rename ${name}`}
                    disabled={isElsewhere || isUnreadable}
                    onClick={() => setTitle(session.title)}
                />
                <Act
                    icon="fork"
                    label={`Fork ${name}`}
                    disabled={isUnreadable}
                    onClick={() => void fork(app, sessionId)}
                />
                <Act
                    icon="file"
                    label={`Export ${name}`}
                    disabled={isUnreadable}
                    onClick={() => void exportSession(app, sessionId)}
                />
                <Act
                    icon="archive"
                    label={`${session.archived ? "Take out" : "Archive"} ${name}`}
                    disabled={isElsewhere || isUnreadable}
                    onClick={() => void archive(app, sessionId, !session.archived)}
                />
                <Act
                    icon="trash"
                    label={`Delete ${name}`}
                    disabled={isElsewhere}
                    onClick={() => void remove(app, sessionId, name)}
                />
            </span>
        </li>
    );
}

function Act({
    icon,
    label,
    disabled,
    onClick,
}: {
    icon: IconName;
    label: string;
    disabled: boolean;
    onClick: () => void;
}) {
    return (
        <button
            type="button"
            class="icon-button"
            title={label}
            aria-label={label}
            disabled={disabled}
            onClick={onClick}
        >
            <Icon name={icon} />
        </button>
    );
}

function StateMark({ session }: { session: SessionSummary }) {
    if (session.runState === "WORKING") return <Spinner />;
    const state = session.runState === "PAUSED" ? "waits" : session.state;
    return <span class={`session-mark ${state}`} aria-hidden="true" />;
}

function detailOf(session: SessionSummary): string {
    if (session.problem !== undefined) return exactLine(session.problem);
    const state =
        session.runState === "PAUSED"
            ? "Waits for you"
            : session.runState === "WORKING"
              ? "Working"
              : session.state === "elsewhere"
                ? "Open in another window"
                : undefined;
    const turns = session.turns === undefined ? undefined : counted(session.turns, "turn");
    const cost = session.cost === undefined || session.cost === 0 ? undefined : dollars(session.cost);
    const answer = session.lastAnswer === undefined ? undefined : exactLine(session.lastAnswer);
    return [state, turns, cost, answer].filter((part) => part !== undefined && part !== "").join(" · ");
}

function Hit({ hit }: { hit: SessionHit }) {
    const app = useApp();
    return (
        <li class="session">
            <button type="button" class="session-open" onClick={() => void showSession(app, hit.sessionId)}>
                <span class="session-title">
                    <bdi>{exactLine(hit.title) || "New session"}</bdi>
                    {hit.writtenAt !== undefined && (
                        <span class="session-time">{ago(hit.writtenAt, Date.now())}</span>
                    )}
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
