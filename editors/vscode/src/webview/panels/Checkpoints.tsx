// All checkpoints of the session, the newest first: what each prompt changed, and the way back to before it.
//
// Rule: choosing one only shows what going back would do; see cards/Checkpoint.tsx for the rest.

import type { Checkpoint } from "kode-protocol";
import { useEffect, useState } from "preact/hooks";

import { useApp, useSelect, useSession } from "../app/context.ts";
import { CheckpointPanel } from "../cards/Checkpoint.tsx";
import { ago, counted, exactLine } from "../text.ts";
import { PaneFrame } from "./Pane.tsx";

export function CheckpointsPane() {
    const app = useApp();
    const active = useSelect((state) => state.active);
    // A turn that began or ended, and a way back that was gone, make another list.
    const turn = useSession((view) => `${view.turn?.turnId ?? ""} ${view.state} ${view.resolved?.resolutionId ?? ""}`);
    const [checkpoints, setCheckpoints] = useState<readonly Checkpoint[]>();
    const [open, setOpen] = useState<string>();
    useEffect(() => {
        if (active === undefined) {
            setCheckpoints([]);
            return undefined;
        }
        let gone = false;
        void app.attempt(async () => {
            const found = await app.host.request("agent/checkpoint/list", { sessionId: active });
            if (!gone) setCheckpoints(found.checkpoints.toReversed());
        });
        return () => {
            gone = true;
        };
    }, [app, active, turn]);
    return (
        <PaneFrame title="Checkpoints">
            {checkpoints === undefined && <p class="hint">Asking the server…</p>}
            {checkpoints?.length === 0 && (
                <p class="hint">No checkpoints yet. One is made before each prompt.</p>
            )}
            <ol class="checkpoint-list">
                {checkpoints?.map((checkpoint) => {
                    const { checkpointId, itemId } = checkpoint;
                    const isOpen = open === checkpointId;
                    return (
                        <li key={checkpointId} class="checkpoint-row">
                            <button
                                type="button"
                                class="session-open"
                                aria-expanded={isOpen}
                                onClick={() => setOpen(isOpen ? undefined : checkpointId)}
                            >
                                <span class="session-title">
                                    <bdi>{exactLine(checkpoint.title) || "A prompt without text"}</bdi>
                                    <span class="session-time">{ago(checkpoint.timestamp, Date.now())}</span>
                                </span>
                                <span class="session-detail">{detailOf(checkpoint)}</span>
                            </button>
                            {isOpen && <CheckpointPanel itemId={itemId} onClose={() => setOpen(undefined)} />}
                        </li>
                    );
                })}
            </ol>
        </PaneFrame>
    );
}

function detailOf({ uris, uncovered }: Checkpoint): string {
    const changed = uris.length === 0 ? "No file was changed" : `${counted(uris.length, "file")} changed`;
    return uncovered.length === 0 ? changed : `${changed}, ${counted(uncovered.length, "file")} cannot be restored`;
}
