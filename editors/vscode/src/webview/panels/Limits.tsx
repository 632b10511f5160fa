// The speed of answers and the provider's rate limits, as bars with the time of their reset.
//
// Rule: only figures that the provider stated are shown, and a limit whose reset has passed is not.

import type { ProviderLimit } from "kode-protocol";

import { useSession } from "../app/context.ts";
import { exactLine, until } from "../text.ts";

/** The used share from which a limit is shown without a click. */
const TIGHT = 0.8;

/** The width of a bar, in units of its view box. */
const WIDTH = 100;

/** The most used limit, where it is nearly used up. */
export function tightest(limits: readonly ProviderLimit[]): { name: string; percent: number } | undefined {
    const most = current(limits).reduce<ProviderLimit | undefined>((one, other) => (one && one.used >= other.used ? one : other), undefined);
    return most && most.used >= TIGHT ? { name: most.name, percent: percentOf(most) } : undefined;
}

/** The limits that still count. */
function current(limits: readonly ProviderLimit[]): readonly ProviderLimit[] {
    const now = Date.now();
    return limits.filter(({ resetsAt }) => resetsAt === undefined || Date.parse(resetsAt) > now);
}

function percentOf({ used }: ProviderLimit): number {
    return Math.round(Math.min(1, Math.max(0, used)) * 100);
}

export function Limits() {
    const limits = current(useSession((view) => view.limits) ?? []);
    const speed = useSession((view) => view.speed);
    if (limits.length === 0 && speed === undefined) return null;
    return (
        <>
            <h3>Provider</h3>
            <table class="figures">
                <tbody>
                    {speed !== undefined && (
                        <tr>
                            <th scope="row">Speed of the last answer</th>
                            <td>{Math.round(speed)} tokens/s</td>
                        </tr>
                    )}
                    {limits.map((limit) => (
                        <Limit key={limit.name} limit={limit} />
                    ))}
                </tbody>
            </table>
        </>
    );
}

function Limit({ limit }: { limit: ProviderLimit }) {
    const percent = percentOf(limit);
    return (
        <tr>
            <th scope="row">
                <bdi>{exactLine(limit.name)}</bdi>{" "}
                {limit.resetsAt !== undefined && <span class="hint">new in {until(limit.resetsAt, Date.now())}</span>}
            </th>
            <td>
                <svg class={percent >= TIGHT * 100 ? "bar full" : "bar"} viewBox={`0 0 ${WIDTH} 6`} aria-hidden="true">
                    <rect class="bar-back" width={WIDTH} height="6" rx="3" />
                    <rect class="bar-front" width={percent} height="6" rx="3" />
                </svg>{" "}
                {percent} % used
            </td>
        </tr>
    );
}
