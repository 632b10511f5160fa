//! What counts of all settings, key by key, with the place it comes from.
//!
//! Rule: what is told is what the files state and the reader lets count; keys to models, tokens and the like are masked
//! before anything leaves here.

use serde_json::{Map, Value};

use super::keys::{KEYS, Key, Shape};
use super::statement::{Standing, Statement};
use super::{Settings, Source};

/// What stands for a text that is nobody's business.
pub const MASK: &str = "••••••";

/// Parts of names of values that are masked.
const SECRET_NAMES: [&str; 9] =
    ["apikey", "api_key", "token", "secret", "password", "passwd", "credential", "authorization", "private"];
/// Names of objects all of whose values are masked.
const SECRET_OBJECTS: [&str; 1] = ["headers"];
/// Names that look like secret ones and hold none.
const OPEN_NAMES: [&str; 5] =
    ["apikeyhelper", "apikeyhelperttlms", "apikeyenv", "maxtokens", "maxoutputtokens"];

/// What counts of one key, or of one name in it.
#[derive(Clone, Debug, PartialEq)]
pub struct Effective {
    /// The key.
    pub key: &'static Key,
    /// The name in it, where it holds entries by name.
    pub name: Option<String>,
    /// The value, secrets masked; none where nobody says anything and there is no default.
    pub value: Option<Value>,
    /// Where the value comes from; none for a default. Of a list, where its first item does.
    pub source: Option<Source>,
    /// All that files state of it, the strongest first, secrets masked.
    pub stated: Vec<Stated>,
}

/// One thing that a file states.
#[derive(Clone, Debug, PartialEq)]
pub struct Stated {
    /// The value, secrets masked.
    pub value: Value,
    /// Where it stands.
    pub source: Source,
    /// What becomes of it.
    pub standing: Standing,
}

impl Effective {
    /// The path by which it is named: `permissions.allow`, `env.PATH`.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.name {
            Some(name) => format!("{}.{name}", self.key.path),
            None => self.key.path.to_owned(),
        }
    }
}

/// What counts by these settings, in the order of the table of keys.
#[must_use]
pub fn effective(settings: &Settings) -> Vec<Effective> {
    let mut all = Vec::new();
    for key in KEYS.iter().filter(|key| key.is_in_use()) {
        let statements: Vec<&Statement> = settings.statements.iter().filter(|one| one.key == key).collect();
        if !key.shape.is_by_name() {
            all.push(of(key, None, &statements));
            continue;
        }
        let mut names: Vec<&String> = Vec::new();
        for name in statements.iter().filter_map(|statement| statement.name.as_ref()) {
            if !names.contains(&name) {
                names.push(name);
            }
        }
        for name in names {
            let named: Vec<_> =
                statements.iter().copied().filter(|one| one.name.as_ref() == Some(name)).collect();
            all.push(of(key, Some(name), &named));
        }
    }
    all
}

fn of(key: &'static Key, name: Option<&String>, statements: &[&Statement]) -> Effective {
    let shown = |statement: &Statement| masked(name.map_or(key.name(), String::as_str), &statement.value);
    let mut counting = statements.iter().filter(|one| one.standing == Standing::InForce);
    let (value, source) = match key.shape {
        Shape::Texts | Shape::Objects | Shape::ListsByName => {
            let mut items: Vec<Value> = Vec::new();
            let mut source = None;
            for statement in counting {
                let value = shown(statement);
                source.get_or_insert_with(|| statement.source.clone());
                if !items.contains(&value) {
                    items.push(value);
                }
            }
            (source.is_some().then_some(Value::Array(items)), source)
        }
        Shape::Switch
        | Shape::Whole { .. }
        | Shape::Number { .. }
        | Shape::Text
        | Shape::Choice(_)
        | Shape::TextsByName
        | Shape::ObjectsByName
        | Shape::Anything => {
            let first = counting.next();
            (first.map(|statement| shown(statement)), first.map(|statement| statement.source.clone()))
        }
    };
    let stated = statements.iter().map(|statement| Stated {
        value: shown(statement),
        source: statement.source.clone(),
        standing: statement.standing,
    });
    Effective {
        key,
        name: name.cloned(),
        value: value.or_else(|| key.default_value()),
        source,
        stated: stated.collect(),
    }
}

/// A value without the secrets in it. `name` is what it stands under. References to variables are no secrets.
#[must_use]
pub fn masked(name: &str, value: &Value) -> Value {
    let name = name.to_ascii_lowercase();
    let is_open = OPEN_NAMES.contains(&name.as_str());
    let is_secret = !is_open && SECRET_NAMES.iter().any(|secret| name.contains(secret));
    let hides_all = SECRET_OBJECTS.contains(&name.as_str());
    match value {
        Value::String(text) if is_secret && !is_reference(text) => Value::String(MASK.to_owned()),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(name, value)| {
                let value = if hides_all { masked(SECRET_NAMES[0], value) } else { masked(name, value) };
                (name.clone(), value)
            });
            Value::Object(entries.collect::<Map<_, _>>())
        }
        Value::Array(items) => items.iter().map(|item| masked(&name, item)).collect(),
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn is_reference(text: &str) -> bool {
    text.is_empty() || text.starts_with("${") && text.ends_with('}') && !text.contains(":-")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn secrets_are_masked_wherever_they_stand() {
        let value = json!({
            "a": { "apiKey": "sk-1", "headers": { "x-anything": "s", "y": "${Y}" }, "model": "m", "maxTokens": 5 },
            "b": [{ "env": { "GITHUB_TOKEN": "t", "PATH": "/bin", "DB_PASSWORD": "p" } }],
            "c": { "apiKeyHelper": "vault", "apiKeyEnv": "NAME", "apiKey": { "fromEnv": "NAME" } },
        });
        let expected = json!({
            "a": { "apiKey": MASK, "headers": { "x-anything": MASK, "y": "${Y}" }, "model": "m", "maxTokens": 5 },
            "b": [{ "env": { "GITHUB_TOKEN": MASK, "PATH": "/bin", "DB_PASSWORD": MASK } }],
            "c": { "apiKeyHelper": "vault", "apiKeyEnv": "NAME", "apiKey": { "fromEnv": "NAME" } },
        });
        assert_eq!(masked("modelProfiles", &value), expected);
        assert_eq!(masked("GITHUB_TOKEN", &json!("t")), json!(MASK));
    }
}
