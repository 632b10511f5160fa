//! Lists of models in the forms of their servers.
//!
//! Rule: total over every JSON: a value that is missing or of another type is unknown.

use std::collections::HashMap;

use serde_json::Value;

use super::ServedModel;

/// Types of models that answer no conversations.
const OTHER_TYPES: [&str; 4] = ["embedding", "embeddings", "reranker", "tts"];

/// `GET /v1/models`: `data` with the id, and what vLLM, OpenRouter, Groq, Mistral, llama.cpp and Anthropic add.
pub(super) fn openai(list: &Value) -> Vec<ServedModel> {
    let data = list.get("data").unwrap_or(list);
    items(data).filter(|model| !is_other(model)).filter_map(openai_model).collect()
}

fn openai_model(model: &Value) -> Option<ServedModel> {
    let window = number(
        model,
        &[
            "/max_model_len",
            "/context_length",
            "/context_window",
            "/max_context_length",
            "/max_input_tokens",
            "/top_provider/context_length",
            "/meta/n_ctx",
        ],
    );
    let output = number(
        model,
        &[
            "/top_provider/max_completion_tokens",
            "/max_completion_tokens",
            "/max_output_tokens",
            "/max_tokens",
        ],
    );
    let lists = |at: &str, name: &str| {
        let list = model.pointer(at)?.as_array()?;
        Some(list.iter().any(|item| item == name))
    };
    let flag = |at: &str| model.pointer(at).and_then(Value::as_bool);
    Some(ServedModel {
        name: text(model, "id")?,
        context_window: window,
        max_output: output.and_then(|output| u32::try_from(output).ok()),
        tools: lists("/supported_parameters", "tools").or(flag("/capabilities/function_calling")),
        images: lists("/architecture/input_modalities", "image").or(flag("/capabilities/vision")),
        thinking: lists("/supported_parameters", "reasoning").or(flag("/capabilities/reasoning")),
        loaded: None,
    })
}

/// llama.cpp's `GET /props`: the window that each request gets, and what template and model can do.
pub(super) fn llama_cpp(props: &Value, models: &mut [ServedModel]) {
    let Some(window) = number(props, &["/default_generation_settings/n_ctx", "/n_ctx"]) else { return };
    let flag = |at: &str| props.pointer(at).and_then(Value::as_bool);
    for model in models {
        model.context_window = Some(window);
        model.tools = flag("/chat_template_caps/supports_tools").or(model.tools);
        model.images = flag("/modalities/vision").or(model.images);
        model.loaded = Some(true);
    }
}

/// LM Studio's `GET /api/v1/models`: the windows that instances were loaded with, and what models can do.
pub(super) fn lm_studio(list: &Value, models: &mut [ServedModel]) {
    for known in list.get("models").into_iter().flat_map(items) {
        let instances = known.get("loaded_instances").map(items).into_iter().flatten();
        let loaded: HashMap<String, Option<u64>> = instances
            .filter_map(|instance| {
                Some((text(instance, "id")?, number(instance, &["/config/context_length"])))
            })
            .collect();
        let key = text(known, "key").unwrap_or_default();
        for model in models.iter_mut().filter(|model| model.name == key || loaded.contains_key(&model.name)) {
            let window = loaded.get(&model.name).copied().flatten();
            let window = window.or_else(|| loaded.values().copied().flatten().next());
            // A model that is not in memory is loaded with a window that only LM Studio's settings know.
            model.context_window = window.or(model.context_window);
            // A model that was not trained for tools gets LM Studio's own form of them.
            let trained = known.pointer("/capabilities/trained_for_tool_use").and_then(Value::as_bool);
            model.tools = trained.filter(|trained| *trained);
            model.images = known.pointer("/capabilities/vision").and_then(Value::as_bool);
            model.loaded = Some(!loaded.is_empty());
        }
    }
}

/// Ollama's `GET /api/tags`.
pub(super) fn ollama(tags: &Value) -> Vec<ServedModel> {
    let models = tags.get("models").into_iter().flat_map(items).filter_map(|model| {
        let mut served = ServedModel {
            name: text(model, "model").or_else(|| text(model, "name"))?,
            context_window: number(model, &["/details/context_length"]),
            loaded: Some(false),
            ..ServedModel::default()
        };
        abilities(model, &mut served);
        let answers =
            model.get("capabilities").map(items).is_none_or(|mut all| all.any(|one| one == "completion"));
        answers.then_some(served)
    });
    models.collect()
}

/// Ollama's `POST /api/show`: the window that the model was made for, by its architecture.
pub(super) fn ollama_shown(shown: &Value, model: &mut ServedModel) {
    let window = shown.get("model_info").and_then(Value::as_object).and_then(|info| {
        let (_, window) = info.iter().find(|(key, _)| key.ends_with(".context_length"))?;
        window.as_u64()
    });
    model.context_window = window.or(model.context_window);
    abilities(shown, model);
}

/// Ollama's `GET /api/ps`: the models in memory.
pub(super) fn ollama_loaded(loaded: &Value, models: &mut [ServedModel]) {
    for running in loaded.get("models").into_iter().flat_map(items) {
        let name = text(running, "model").or_else(|| text(running, "name"));
        for model in models.iter_mut().filter(|model| Some(&model.name) == name.as_ref()) {
            model.loaded = Some(true);
        }
    }
}

/// The abilities of a model by Ollama.
fn abilities(reported: &Value, model: &mut ServedModel) {
    let Some(list) = reported.get("capabilities").and_then(Value::as_array) else { return };
    let has = |name: &str| Some(list.iter().any(|item| item == name));
    (model.tools, model.images, model.thinking) = (has("tools"), has("vision"), has("thinking"));
}

/// Gemini's `GET /v1beta/models`.
pub(super) fn gemini(list: &Value) -> Vec<ServedModel> {
    let models = list.get("models").into_iter().flat_map(items).filter(|model| {
        let methods = model.get("supportedGenerationMethods").map(items);
        methods.is_none_or(|mut methods| methods.any(|method| method == "generateContent"))
    });
    let served = models.filter_map(|model| {
        let name = text(model, "name")?;
        let output = number(model, &["/outputTokenLimit"]).and_then(|output| u32::try_from(output).ok());
        Some(ServedModel {
            name: name.strip_prefix("models/").unwrap_or(&name).to_owned(),
            context_window: number(model, &["/inputTokenLimit"]),
            max_output: output,
            thinking: model.get("thinking").and_then(Value::as_bool),
            ..ServedModel::default()
        })
    });
    served.collect()
}

fn is_other(model: &Value) -> bool {
    let kind = model.get("type").and_then(Value::as_str).unwrap_or_default();
    OTHER_TYPES.contains(&kind)
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn text(value: &Value, field: &str) -> Option<String> {
    value.get(field)?.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// The first of these places that holds a positive number.
fn number(value: &Value, places: &[&str]) -> Option<u64> {
    places.iter().filter_map(|at| value.pointer(at)?.as_u64()).find(|number| *number > 0)
}
