// The line below the prompt: attachments, mode, model, effort, the context window, and the buttons that send and stop.
//
// Rule: the way to stop is in sight whenever something runs.

import type { App } from "../app/app.ts";
import { useApp, useSelect, useSession } from "../app/context.ts";
import { addPart } from "../app/drafts.ts";
import { stop } from "../app/prompt.ts";
import { IconAct } from "../panels/IconAct.tsx";
import { Meter } from "../panels/Meter.tsx";
import { EffortPicker, ModelPicker, ModePicker, SandboxMark } from "../panels/Pickers.tsx";
import { isRunning } from "../store/session.ts";

interface Props {
    submit: (delivery: "queue" | "steer") => void;
}

export function ComposerFoot({ submit }: Props) {
    const app = useApp();
    const isBlank = useSelect(({ prompt }) => prompt.text.trim() === "" && prompt.parts.length === 0);
    const isStopped = useSelect((state) => state.host?.connection.state === "stopped");
    const running = useSession(isRunning) ?? false;
    return (
        <div class="composer-foot">
            <span class="composer-start">
                <IconAct icon="attach" label="Attach files" onClick={() => void pickFiles(app)} />
                <ModePicker />
                <ModelPicker />
                <EffortPicker />
                <SandboxMark />
            </span>
            <span class="composer-end">
                <Meter />
                {running && !isBlank && (
                    <IconAct
                        icon="play"
                        label="Send to the running turn"
                        title="Send to the running turn (Ctrl+Enter)"
                        onClick={() => submit("steer")}
                    />
                )}
                {running && (
                    <IconAct icon="stop" label="Stop" title="Stop (Esc Esc)" extra="stop" onClick={() => void stop(app)} />
                )}
                <IconAct
                    icon="send"
                    label={running ? "Queue" : "Send"}
                    title={running ? "Queue (Enter)" : "Send (Enter)"}
                    extra="send"
                    disabled={isBlank || isStopped}
                    onClick={() => submit("queue")}
                />
            </span>
        </div>
    );
}

async function pickFiles(app: App): Promise<void> {
    await app.attempt(async () => {
        const { uris } = await app.host.act("pickFiles", {});
        for (const uri of uris) addPart(app, { type: "mention", uri });
    });
    app.focus.get("prompt")?.();
}
