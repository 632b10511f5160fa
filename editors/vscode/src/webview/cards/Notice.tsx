// A notice of the server, with the actions that help.
//
// Rule: actions are offered by the last notice of a session at rest; an older notice is text alone.

import type { Item, Notice } from "kode-protocol";

import { hintOf } from "../../logic/words.ts";
import { useApp, useFollows, useSession } from "../app/context.ts";
import { compact, continueTurn, retryTurn } from "../app/turns.ts";
import { Icon } from "../panels/Icon.tsx";
import { Words } from "../panels/Words.tsx";
import { isRunning } from "../store/session.ts";
import { itemsOf, newestItem } from "../store/transcript.ts";
import { exact } from "../text.ts";

export function NoticeRow({ item, notice }: { item: Item; notice: Notice }) {
    const { level, text } = notice;
    const hint = hintOf(notice);
    return (
        <div class={`notice ${level}`} role="note">
            <Icon name={level === "info" ? "info" : "warning"} />
            <div>
                <p>
                    <Words text={exact(text)} />
                </p>
                {hint !== "" && (
                    <p class="hint">
                        <Words text={exact(hint)} />
                    </p>
                )}
                <NoticeActs item={item} notice={notice} />
            </div>
        </div>
    );
}

function NoticeActs({ item, notice }: { item: Item; notice: Notice }) {
    const app = useApp();
    const follows = useFollows();
    const isLast = useSession((view) => !isRunning(view) && newestItem(view.transcript)?.itemId === item.itemId) ?? false;
    if (!isLast || follows) return null;
    const { kind } = notice;
    const isFailure = kind === "apiError" || kind === "apiKey" || kind === "contextTooLong";
    const breaksOff = kind === "interrupted" || kind === "turnLimit";
    if (!isFailure && !breaksOff) return null;
    return (
        <div class="actions">
            {kind === "apiKey" && (
                <button type="button" class="primary" onClick={() => void app.attempt(() => app.host.act("addKey", {}))}>
                    Add a key…
                </button>
            )}
            {kind === "contextTooLong" && (
                <button type="button" class="primary" onClick={() => compact(app)}>
                    Compact
                </button>
            )}
            {isFailure && (
                <button type="button" class="secondary" onClick={() => retryTurn(app, turnOf(app.session(), item))}>
                    Retry
                </button>
            )}
            {breaksOff && (
                <button type="button" class="secondary" onClick={() => continueTurn(app)}>
                    Continue
                </button>
            )}
        </div>
    );
}

/** The prompt of the turn that an item belongs to, and whether a tool was called in it. */
function turnOf({ transcript }: Parameters<typeof isRunning>[0], { turnId }: Item) {
    const items = itemsOf(transcript).filter((other) => other.turnId === turnId);
    const prompt = items.find(({ body }) => body.type === "userMessage" && !body.steered);
    return { ...(prompt ? { prompt } : {}), hasCalls: items.some(({ body }) => body.type === "toolCall") };
}
