// Groups of sessions by the day something last happened in them.
//
// Rule: days are those of the user's clock and calendar.

import type { SessionSummary } from "kode-protocol";

/** The sessions of some days, in the order they came in. */
export interface Days {
    readonly label: string;
    readonly sessions: readonly SessionSummary[];
}

/** The groups that are not empty, newest first. */
export function byDay(sessions: readonly SessionSummary[], now: number): Days[] {
    const groups = new Map<string, SessionSummary[]>();
    for (const session of sessions) {
        const label = labelOf(Date.parse(session.updatedAt), now);
        const group = groups.get(label) ?? [];
        group.push(session);
        groups.set(label, group);
    }
    return [...groups].map(([label, members]) => ({ label, sessions: members }));
}

function labelOf(time: number, now: number): string {
    const midnight = (daysAgo: number) => {
        const day = new Date(now);
        return new Date(day.getFullYear(), day.getMonth(), day.getDate() - daysAgo).getTime();
    };
    if (time >= midnight(0)) return "Today";
    if (time >= midnight(1)) return "Yesterday";
    if (time >= midnight(6)) return "Last 7 days";
    return time >= midnight(29) ? "Last 30 days" : "Older";
}
