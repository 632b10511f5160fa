// The providers a key can be added for, and the profiles that the server is given for them.
//
// Rule: names and variables are those of the server's catalog; a test compares them. A key is part of a profile and never of a
// setting, a log or a message.

/** A provider of models. */
export interface KnownProvider {
    /** Its name at the server. */
    readonly name: string;
    readonly label: string;
    /** The variable that the server reads a key from; absent for servers that want no key. */
    readonly variable?: string;
    /** Where people get a key. */
    readonly page?: string;
    /** How keys begin, as a hint. */
    readonly sample?: string;
    /** Whether the server chooses a model by itself where the profile names none. */
    readonly hasDefault?: boolean;
    /** Where a server on this machine lists its models. */
    readonly local?: string;
}

export const PROVIDERS: readonly KnownProvider[] = [
    {
        name: "anthropic",
        label: "Anthropic",
        variable: "ANTHROPIC_API_KEY",
        page: "https://console.anthropic.com/settings/keys",
        sample: "sk-ant-…",
        hasDefault: true,
    },
    {
        name: "openai-responses",
        label: "OpenAI",
        variable: "OPENAI_API_KEY",
        page: "https://platform.openai.com/api-keys",
        sample: "sk-…",
        hasDefault: true,
    },
    { name: "gemini", label: "Google Gemini", variable: "GEMINI_API_KEY", page: "https://aistudio.google.com/apikey" },
    { name: "openrouter", label: "OpenRouter", variable: "OPENROUTER_API_KEY", page: "https://openrouter.ai/keys" },
    { name: "mistral", label: "Mistral", variable: "MISTRAL_API_KEY", page: "https://console.mistral.ai/api-keys" },
    { name: "xai", label: "xAI", variable: "XAI_API_KEY", page: "https://console.x.ai" },
    { name: "deepseek", label: "DeepSeek", variable: "DEEPSEEK_API_KEY", page: "https://platform.deepseek.com/api_keys" },
    { name: "groq", label: "Groq", variable: "GROQ_API_KEY", page: "https://console.groq.com/keys" },
    { name: "kimi", label: "Kimi", variable: "MOONSHOT_API_KEY", page: "https://platform.moonshot.ai/console/api-keys" },
    { name: "qwen", label: "Qwen", variable: "DASHSCOPE_API_KEY", page: "https://bailian.console.alibabacloud.com" },
    { name: "glm", label: "GLM", variable: "ZAI_API_KEY", page: "https://z.ai/manage-apikey/apikey-list" },
    { name: "minimax", label: "MiniMax", variable: "MINIMAX_API_KEY", page: "https://platform.minimax.io" },
    { name: "siliconflow", label: "SiliconFlow", variable: "SILICONFLOW_API_KEY", page: "https://cloud.siliconflow.com" },
    { name: "ollama", label: "Ollama", local: "http://localhost:11434/v1/models" },
    { name: "lmstudio", label: "LM Studio", local: "http://localhost:1234/v1/models" },
    { name: "llamacpp", label: "llama.cpp", local: "http://localhost:8080/v1/models" },
    { name: "vllm", label: "vLLM", local: "http://localhost:8000/v1/models" },
];

/** A profile that the user has made in the editor. */
export interface OwnProfile {
    /** Its name, which is the provider's with a number where there are several. */
    readonly name: string;
    readonly provider: string;
    readonly key?: string;
    readonly model?: string;
    readonly baseUrl?: string;
    /** Whether conversations use it where nothing else can be asked. */
    readonly main: boolean;
}

/** The most profiles that are kept. */
export const MOST_PROFILES = 50;

/** Reads the stored state; unreadable entries are left out. */
export function readProfiles(text: string | undefined): OwnProfile[] {
    let found: unknown;
    try {
        found = JSON.parse(text ?? "[]");
    } catch {
        // Written by something else: nothing of it is a profile.
        return [];
    }
    return Array.isArray(found) ? found.filter(isProfile).slice(0, MOST_PROFILES) : [];
}

function isProfile(value: unknown): value is OwnProfile {
    const one = value as Partial<OwnProfile> | null;
    return typeof one?.name === "string" && typeof one.provider === "string" && typeof one.main === "boolean";
}

/** A name for a new profile of a provider. */
export function freeName(provider: string, taken: readonly OwnProfile[]): string {
    const names = new Set(taken.map(({ name }) => name));
    for (let number = 1; ; number += 1) {
        const name = number === 1 ? provider : `${provider}-${number}`;
        if (!names.has(name)) return name;
    }
}

/** The part of `initializationOptions` that the profiles make up; what the user has set there comes first. */
export function withProfiles(options: Record<string, unknown>, profiles: readonly OwnProfile[]): Record<string, unknown> {
    if (profiles.length === 0) return options;
    const own = Object.fromEntries(profiles.map((profile) => [profile.name, optionsOf(profile)]));
    const main = profiles.findLast((profile) => profile.main);
    return {
        ...options,
        models: { ...own, ...(options["models"] as object | undefined) },
        ...(main ? { pointers: { main: main.name, ...(options["pointers"] as object | undefined) } } : {}),
    };
}

function optionsOf({ provider, key, model, baseUrl }: OwnProfile): Record<string, unknown> {
    return {
        provider,
        ...(key === undefined ? {} : { apiKey: key }),
        ...(model === undefined ? {} : { model }),
        ...(baseUrl === undefined ? {} : { baseUrl }),
    };
}

/** The problems of a key that was typed; undefined when nothing is. */
export function keyProblem(key: string): string | undefined {
    const text = key.trim();
    if (text === "") return "Paste the key.";
    if (/\s/.test(text)) return "A key has no spaces or line breaks.";
    return text.length > 4_096 ? "This is longer than any key." : undefined;
}
