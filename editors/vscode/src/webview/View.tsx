// The page, put together.
//
// Rule: one live region, one transcript, one prompt. Clicks in rendered Markdown are understood here, for all of it.

import { useCallback, useEffect, useMemo, useRef } from "preact/hooks";

import { useApp, useSelect, useSession } from "./app/context.ts";
import { codeAct } from "./app/code.ts";
import { openTarget } from "./app/open.ts";
import { stop } from "./app/prompt.ts";
import { loadOlder } from "./app/sessions.ts";
import { activeSession } from "./app/state.ts";
import { RowView, rowLabel } from "./cards/Message.tsx";
import { Working } from "./cards/Working.tsx";
import { lazily } from "./lazily.tsx";
import { List, type ListHandle } from "./list/List.tsx";
import { targetOf } from "./markdown/links.ts";
import { Banners } from "./panels/Banners.tsx";
import { Boundary } from "./panels/Boundary.tsx";
import { Dock } from "./panels/dock/Dock.tsx";
import { Followed, Heading } from "./panels/Header.tsx";
import { Welcome } from "./panels/Welcome.tsx";
import { isRunning } from "./store/session.ts";
import { rowsOf, withEnds, type Row } from "./store/rows.ts";
import { EMPTY } from "./store/transcript.ts";

const CheckpointsPane = lazily(() => import("./panels/Checkpoints.tsx").then((found) => found.CheckpointsPane));
const RulesPane = lazily(() => import("./panels/Rules.tsx").then((found) => found.RulesPane));
const Sessions = lazily(() => import("./panels/Sessions.tsx").then((found) => found.Sessions));

/** How soon a second Escape follows the first. */
const TWICE_MS = 1_000;

export function View() {
    const app = useApp();
    const listOpen = useSelect((state) => state.listOpen);
    const active = useSelect((state) => state.active);
    const pane = useSelect((state) => state.pane);
    const escaped = useRef(-Infinity);

    const follow = (event: MouseEvent | KeyboardEvent) => {
        const target = event.target as HTMLElement;
        const link = target.closest<HTMLElement>("a.link");
        const act = target.closest<HTMLElement>("button[data-act]");
        if (event instanceof KeyboardEvent && (event.key !== "Enter" || !link)) return;
        const leads = link && targetOf(link);
        if (leads) {
            event.preventDefault();
            void openTarget(app, leads);
        } else if (act && event instanceof MouseEvent) {
            codeAct(app, act);
        }
    };
    const onKey = (event: KeyboardEvent) => {
        follow(event);
        if (event.key !== "Escape" || event.isComposing || event.defaultPrevented) return;
        const view = activeSession(app.state);
        if (!view || !isRunning(view)) return;
        if (event.timeStamp - escaped.current < TWICE_MS) {
            escaped.current = -Infinity;
            void stop(app);
        } else {
            escaped.current = event.timeStamp;
            app.announce("Press Escape again to stop.");
        }
    };
    return (
        <div class="page" onClick={follow} onKeyDown={onKey}>
            <Banners />
            <Followed />
            <main class="main">
                <Heading />
                {listOpen ? (
                    <Boundary name="The list of sessions">
                        <Sessions />
                    </Boundary>
                ) : pane ? (
                    <Boundary name="This page" key={pane}>
                        {pane === "rules" ? <RulesPane /> : <CheckpointsPane />}
                    </Boundary>
                ) : (
                    <Boundary name="The conversation" key={active ?? "new"}>
                        <Conversation />
                    </Boundary>
                )}
            </main>
            <footer>
                <Boundary name="This part of the page">
                    <Dock />
                </Boundary>
            </footer>
            <LiveRegion />
        </div>
    );
}

function Conversation() {
    const app = useApp();
    const transcript = useSession((view) => view.transcript) ?? EMPTY;
    const running = useSession(isRunning) ?? false;
    const rows = useMemo(() => withEnds(rowsOf(transcript), running), [transcript, running]);
    const older = useCallback(() => void loadOlder(app), [app]);
    const last = useRef<string | undefined>(undefined);
    last.current = rows.findLast(({ kind }) => kind === "item")?.key;
    const handle = useCallback(
        (list: ListHandle) => {
            app.focus.set("lastMessage", () => {
                if (last.current !== undefined) list.focusRow(last.current);
            });
        },
        [app],
    );
    return (
        <>
            <List<Row>
                rows={rows}
                more={transcript.more}
                onOlder={older}
                handle={handle}
                label={rowLabel}
                empty={<Welcome />}
                draw={(row) => (
                    <Boundary name="This row">
                        <RowView row={row} />
                    </Boundary>
                )}
            />
            <Working />
        </>
    );
}

/** Tells users of screen readers what has happened. */
function LiveRegion() {
    const { text, number } = useSelect((state) => state.announcement);
    const element = useRef<HTMLDivElement>(null);
    useEffect(() => {
        // The same words again are another announcement; an invisible difference has them read.
        if (element.current)
            element.current.textContent = text === "" ? "" : text + (number % 2 === 0 ? "" : "\u00a0");
    }, [number]);
    return <div ref={element} class="unseen" role="status" aria-live="polite" aria-atomic="true" />;
}
