//! The files that a server names as its own: the document selectors of its capabilities and registrations, as extensions.
//!
//! Rule: only what has an extension in the end counts. A selector that says less, such as a scheme, names no file.

use kode_engine::languages::{extensions_of_language, language_of_extension};
use serde_json::Value;

/// The most selectors of one message that are read.
const MAX_SELECTORS: usize = 1_000;

/// The extensions, in lower case, with the ids of their languages, that the answer to `initialize` names.
pub(super) fn of_capabilities(capabilities: &Value) -> Vec<(String, String)> {
    let options = capabilities.as_object().into_iter().flat_map(|all| all.values());
    of_options(options)
}

/// Those that a registration names.
pub(super) fn of_registrations(params: &Value) -> Vec<(String, String)> {
    let registrations = params["registrations"].as_array().into_iter().flatten();
    let of_documents = registrations
        .filter(|one| one["method"].as_str().is_some_and(|method| method.starts_with("textDocument/")));
    of_options(of_documents.map(|one| &one["registerOptions"]))
}

fn of_options<'v>(options: impl Iterator<Item = &'v Value>) -> Vec<(String, String)> {
    let selectors = options.filter_map(|options| options.get("documentSelector")?.as_array()).flatten();
    selectors.take(MAX_SELECTORS).flat_map(of_selector).collect()
}

/// A selector is an object with a language, a pattern or both, or the id of a language alone.
fn of_selector(selector: &Value) -> Vec<(String, String)> {
    let language = selector.as_str().or(selector["language"].as_str()).filter(|language| *language != "*");
    let patterns = selector["pattern"].as_str().map(extensions_of_pattern).unwrap_or_default();
    if patterns.is_empty() {
        let Some(language) = language else { return Vec::new() };
        let known = extensions_of_language(language).into_iter();
        return known.map(|extension| (extension.to_owned(), language.to_owned())).collect();
    }
    let named = |extension: String| {
        let language =
            language.or_else(|| language_of_extension(&extension)).unwrap_or(&extension).to_owned();
        (extension, language)
    };
    patterns.into_iter().map(named).collect()
}

/// The extensions of `**/*.a` and of `**/*.{a,b}`; none of another pattern.
fn extensions_of_pattern(pattern: &str) -> Vec<String> {
    let name = pattern.rsplit('/').next().unwrap_or(pattern);
    let Some(extension) = name.strip_prefix("*.") else { return Vec::new() };
    let list = extension.strip_prefix('{').and_then(|list| list.strip_suffix('}')).unwrap_or(extension);
    let is_plain = |part: &str| !part.is_empty() && !part.contains(['*', '?', '[', ']', '{', '}']);
    let parts = list.split(',').map(|part| part.trim().trim_start_matches('.'));
    // Of `d.ts` the last part is what files are known by.
    let last = |part: &str| part.rsplit('.').next().unwrap_or(part).to_lowercase();
    parts.filter(|part| is_plain(part)).map(last).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn named(selectors: Value) -> Vec<(String, String)> {
        of_capabilities(
            &json!({ "definitionProvider": { "documentSelector": selectors }, "hoverProvider": true }),
        )
    }

    fn pairs(list: &[(&str, &str)]) -> Vec<(String, String)> {
        list.iter().map(|(extension, language)| ((*extension).to_owned(), (*language).to_owned())).collect()
    }

    #[test]
    fn selectors_name_extensions_by_pattern_and_by_language() {
        for (selectors, expected) in [
            (json!([{ "language": "words", "pattern": "**/*.WORD" }]), pairs(&[("word", "words")])),
            (json!([{ "pattern": "**/*.{py,pyi}" }]), pairs(&[("py", "python"), ("pyi", "python")])),
            (json!([{ "pattern": "*.mine" }]), pairs(&[("mine", "mine")])),
            (json!([{ "language": "go", "scheme": "file" }]), pairs(&[("go", "go")])),
            (json!(["python"]), pairs(&[("py", "python"), ("pyi", "python")])),
        ] {
            assert_eq!(named(selectors.clone()), expected, "{selectors}");
        }
    }

    #[test]
    fn selectors_without_an_extension_name_nothing() {
        for selectors in [
            json!(null),
            json!([{ "scheme": "file" }]),
            json!([{ "language": "*" }]),
            json!([{ "pattern": "**/*" }]),
            json!(["no such"]),
        ] {
            assert_eq!(named(selectors.clone()), [], "{selectors}");
        }
    }

    #[test]
    fn registrations_for_documents_count_and_those_for_watched_files_do_not() {
        let one = |method: &str, extension: &str| {
            json!({ "id": method, "method": method,
            "registerOptions": { "documentSelector": [{ "pattern": format!("**/*.{extension}"), "language": "l" }] } })
        };
        let params = json!({ "registrations": [one("textDocument/hover", "a"), one("workspace/x", "b")] });
        assert_eq!(of_registrations(&params), pairs(&[("a", "l")]));
    }
}
