// How far an Allow reaches: the choice, and what exactly runs from then on.
//
// Rule: one tab stop; the arrows choose. The rules shown are those that the server would keep, and a rule that is wider than the
// command that asks says so.

import type { PermissionPrompt } from "kode-protocol";
import { useRef } from "preact/hooks";

import { useSelect } from "../app/context.ts";
import { counted, exactLine, relativePaths } from "../text.ts";
import type { PermissionState, Reach } from "./permission.ts";

export const REACHES: Record<Reach, string> = {
    once: "Only this time",
    edits: "All edits from now on",
    session: "In this session",
    project: "In this project",
    user: "Everywhere",
};

interface Props {
    prompt: PermissionPrompt;
    state: PermissionState;
}

export function ReachChoice({ prompt, state }: Props) {
    const { reaches, reach, hunks } = state;
    if (hunks !== undefined) return null;
    return (
        <>
            {reaches.length > 1 && <Choice state={state} />}
            {reach === "edits" ? (
                <p class="offer">
                    Kode edits files of the workspace without asking, in this session. Commands, files outside the workspace
                    and protected files still ask. The mode becomes Edit.
                </p>
            ) : (
                <Offered prompt={prompt} reach={reach} />
            )}
        </>
    );
}

function Choice({ state: { reaches, reach, setReach } }: { state: PermissionState }) {
    const group = useRef<HTMLDivElement>(null);
    const onKey = (event: KeyboardEvent) => {
        const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
        if (step === undefined) return;
        event.preventDefault();
        event.stopPropagation();
        const next = moved(reaches, reach, step);
        setReach(next);
        group.current?.querySelector<HTMLElement>(`[data-reach="${next}"]`)?.focus();
    };
    return (
        <div ref={group} class="scopes" role="radiogroup" aria-label="How far Allow reaches" onKeyDown={onKey}>
            {reaches.map((choice) => (
                <button
                    key={choice}
                    type="button"
                    role="radio"
                    data-reach={choice}
                    tabIndex={reach === choice ? 0 : -1}
                    aria-checked={reach === choice}
                    class={reach === choice ? "scope chosen" : "scope"}
                    onClick={() => setReach(choice)}
                >
                    {REACHES[choice]}
                </button>
            ))}
        </div>
    );
}

/** The choice this many steps on, around the ends. */
export function moved(reaches: readonly Reach[], reach: Reach, step: number): Reach {
    const at = reaches.indexOf(reach) + step;
    return reaches[(at + reaches.length) % reaches.length] ?? "once";
}

function Offered({ prompt, reach }: { prompt: PermissionPrompt; reach: Reach }) {
    const folders = useSelect((state) => state.host?.folders);
    const offer = prompt.offers?.find(({ scope }) => scope === reach);
    if (!offer) return null;
    const { spared } = offer;
    return (
        <p class="offer">
            Runs without asking from then on:{" "}
            {offer.rules.map((rule, index) => (
                <code key={index} title={exactLine(rule)}>
                    {reach === "session" ? relativePaths(exactLine(rule), folders ?? []) : exactLine(rule)}
                </code>
            ))}
            {isWider(offer.rules, prompt) && <span> This covers more than the command above: any arguments after it.</span>}
            {spared && spared.of > 0 && (
                <span>
                    {" "}
                    It would have answered {spared.matched} of the last {counted(spared.of, "prompt")}.
                </span>
            )}
        </p>
    );
}

/** Whether a rule covers commands that begin like this one. */
function isWider(rules: readonly string[], { preview }: PermissionPrompt): boolean {
    return preview.type === "command" && rules.some((rule) => /^\w+\(.*(?::\*|\*)\)$/.test(rule));
}
