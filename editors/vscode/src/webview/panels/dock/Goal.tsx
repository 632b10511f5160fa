// The goal of the session, and how far its checks and bounds are used up.
//
// Rule: one line with the state of the goal, until it is opened. A goal that is met or bounded stays until it is removed.

import type { Goal, GoalState } from "kode-protocol";

import { useApp, useSession, useToggle } from "../../app/context.ts";
import { removeGoal } from "../../app/turns.ts";
import { dollars, exact, exactLine, prose, span } from "../../text.ts";
import { Icon } from "../Icon.tsx";
import { IconAct } from "../IconAct.tsx";

const ENDS: Record<Exclude<GoalState, "active">, string> = {
    met: "Goal met",
    outOfRounds: "Goal not met: no checks left",
    outOfMoney: "Goal not met: no money left",
    outOfTime: "Goal not met: no time left",
};

/** The state of the goal in a few words; undefined without a goal. */
export function useGoal(): string | undefined {
    const goal = useSession((view) => view.goal);
    return goal && stateOf(goal);
}

export function GoalPart() {
    const app = useApp();
    const goal = useSession((view) => view.goal);
    const [open, toggle] = useToggle("dock:goal", false);
    if (!goal) return null;
    return (
        <section class="dock-part goal" aria-label="Goal">
            <div class="dock-line">
                <button type="button" class="dock-open" aria-expanded={open} onClick={toggle} title={exact(goal.text)}>
                    <Icon name={goal.state === "met" ? "check" : "goal"} />
                    <span class="dock-title">
                        {stateOf(goal)}
                        <span class="roomy">: {exactLine(goal.text)}</span>
                    </span>
                    <span class="card-chevron">
                        <Icon name="chevron" />
                    </span>
                </button>
                <span class="dock-acts">
                    <IconAct icon="close" label="Remove the goal" onClick={() => removeGoal(app)} />
                </span>
            </div>
            {open && <Progress goal={goal} />}
        </section>
    );
}

function Progress({ goal }: { goal: Goal }) {
    const { check, rounds, maxRounds, cost, maxCost, durationMs, maxMinutes, finding } = goal;
    return (
        <div class="goal-progress">
            <p>{prose(goal.text)}</p>
            <dl>
                <dt>Check</dt>
                <dd>{check === undefined ? "a model" : <code>{exactLine(check)}</code>}</dd>
                <dt>Checks</dt>
                <dd>
                    {rounds} of {maxRounds}
                </dd>
                <dt>Cost</dt>
                <dd>
                    {dollars(cost)}
                    {maxCost !== undefined && ` of ${dollars(maxCost)}`}
                </dd>
                <dt>Time</dt>
                <dd>
                    {span(durationMs)}
                    {maxMinutes !== undefined && ` of ${maxMinutes} min`}
                </dd>
            </dl>
            {finding !== undefined && <pre class="goal-finding">{exact(finding)}</pre>}
        </div>
    );
}

function stateOf({ state, rounds, maxRounds }: Goal): string {
    return state === "active" ? `Goal, ${rounds} of ${maxRounds} checks` : ENDS[state];
}
