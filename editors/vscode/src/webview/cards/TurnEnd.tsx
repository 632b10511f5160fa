// The last line of a turn: how long it took, what it cost, what it changed, and what can be done next.
//
// Rule: a figure that is not known is left out. Nothing here changes a file.

import { useApp, useSession } from "../app/context.ts";
import { continueTurn, copyAnswer, retryTurn } from "../app/turns.ts";
import { Icon } from "../panels/Icon.tsx";
import { IconAct } from "../panels/IconAct.tsx";
import type { TurnItems } from "../store/rows.ts";
import type { TurnView } from "../store/session.ts";
import { counted, dollars, span } from "../text.ts";

/** Turns that ended otherwise than by themselves, in a word. */
const ENDINGS: Partial<Record<NonNullable<TurnView["stopReason"]>, string>> = {
    cancelled: "Stopped",
    error: "Failed",
    max_tokens: "Cut off",
    max_turns: "Stopped at its limit",
    budget: "Stopped at its budget",
    refusal: "Declined",
    repetition: "Stopped: it repeated itself",
    hook: "Stopped by a hook",
};

/** Turns below that many milliseconds took no time. */
const SHORTEST = 50;

/** Turns that the user may have continue. */
const CONTINUES = new Set(["cancelled", "max_tokens", "max_turns", "budget", "incomplete_intent"]);

export function TurnEndRow({ turn }: { turn: TurnItems }) {
    const end = useSession((view) => view.ends.get(turn.turnId));
    const cost = useSession((view) => end?.cost ?? view.costs.get(turn.turnId)) ?? 0;
    const reason = end?.stopReason ?? "end_turn";
    const stopped = ENDINGS[reason];
    return (
        <div class={`turn-end${turn.isLast ? " last" : ""}${stopped === undefined ? "" : " stopped"}`}>
            <Icon name={stopped === undefined ? "check" : "info"} />
            <span class="turn-figures">{figures(turn, end, cost).join(" · ")}</span>
            <TurnActs turn={turn} reason={reason} />
        </div>
    );
}

function TurnActs({ turn, reason }: { turn: TurnItems; reason: string }) {
    const app = useApp();
    const follows = useSession((view) => view.following !== undefined) ?? false;
    const { isLast, files, answer } = turn;
    const review = () =>
        void app.attempt(() => app.host.act("reviewChanges", { sessionId: app.session().sessionId }));
    return (
        <span class="turn-acts">
            {isLast && !follows && CONTINUES.has(reason) && (
                <button type="button" class="quiet" onClick={() => continueTurn(app)}>
                    Continue
                </button>
            )}
            {isLast && files.length > 0 && (
                <button type="button" class="quiet" onClick={review}>
                    Review
                </button>
            )}
            {answer !== "" && <IconAct icon="copy" label="Copy the answer" onClick={() => copyAnswer(app, answer)} />}
            {isLast && !follows && <IconAct icon="retry" label="Retry" onClick={() => retryTurn(app, turn)} />}
        </span>
    );
}

function figures(turn: TurnItems, end: TurnView | undefined, cost: number): string[] {
    const reason = end?.stopReason;
    const took = end?.durationMs ?? passed(turn);
    return [
        (reason && ENDINGS[reason]) ?? "",
        took === undefined || took < SHORTEST ? "" : span(took),
        cost === 0 ? "" : dollars(cost),
        turn.files.length === 0 ? "" : counted(turn.files.length, "file"),
    ].filter(Boolean);
}

/** From the prompt to the beginning of the last item, or to the end of the last call, in milliseconds. */
function passed({ prompt, last }: TurnItems): number | undefined {
    if (!prompt) return undefined;
    const { body } = last;
    const end = body.type === "toolCall" && body.endedAt !== undefined ? body.endedAt : last.timestamp;
    const milliseconds = Date.parse(end) - Date.parse(prompt.timestamp);
    return milliseconds >= 0 ? milliseconds : undefined;
}
