//! The effective settings, key by key, with the place it comes from.
//!
//! Rule: the output is the stated values that the reader accepts; secrets are masked before anything leaves here.

use serde_json::Value;

use super::Settings;
use super::keys::{KEYS, Key, KeyShape};
use super::statement::{Statement, StatementStanding};
use kode_base::mask::{masked, masked_variable};
use kode_permission::rules::RuleSource;

/// The effective value of one key, or of one name in it.
#[derive(Clone, Debug, PartialEq)]
pub struct EffectiveSetting {
    /// The key.
    pub key: &'static Key,
    /// The name in it, where it holds entries by name.
    pub name: Option<String>,
    /// The value, secrets masked; none by default anything and there is no default.
    pub value: Option<Value>,
    /// Where the value comes from; none for a default. Of a list, where its first item does.
    pub source: Option<RuleSource>,
    /// All that files state of it, the strongest first, secrets masked.
    pub stated: Vec<SettingStatement>,
}

/// One thing that a file states.
#[derive(Clone, Debug, PartialEq)]
pub struct SettingStatement {
    /// The value, secrets masked.
    pub value: Value,
    /// Its place.
    pub source: RuleSource,
    /// Its state.
    pub standing: StatementStanding,
}

impl EffectiveSetting {
    /// The path by which it is named: `permissions.allow`, `env.PATH`.
    #[must_use]
    pub fn path(&self) -> String {
        match &self.name {
            Some(name) => format!("{}.{name}", self.key.path),
            None => self.key.path.to_owned(),
        }
    }
}

/// The effective settings, in the order of the table of keys.
#[must_use]
pub fn effective(settings: &Settings) -> Vec<EffectiveSetting> {
    let mut all = Vec::new();
    for key in KEYS.iter().filter(|key| key.is_in_use()) {
        let statements: Vec<&Statement> = settings.statements.iter().filter(|one| one.key == key).collect();
        if !key.shape.is_by_name() {
            let mut one = of(key, None, &statements);
            // `permissionMode` states the same, and the stronger of both counts.
            if key.path == "permissions.defaultMode"
                && let Some(mode) = &settings.values.default_mode
            {
                one.value = Some(Value::from(mode.value.name()));
                one.source = Some(mode.source.clone());
            }
            all.push(one);
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

fn of(key: &'static Key, name: Option<&String>, statements: &[&Statement]) -> EffectiveSetting {
    let shown = |statement: &Statement| match (key.path, name) {
        ("env", Some(name)) => masked_variable(name, &statement.value),
        (_, name) => masked(name.map_or(key.name(), String::as_str), &statement.value),
    };
    let mut counting = statements.iter().filter(|one| one.standing == StatementStanding::InForce);
    let (value, source) = match key.shape {
        KeyShape::Texts | KeyShape::Objects | KeyShape::ListsByName => {
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
        KeyShape::Switch
        | KeyShape::Whole { .. }
        | KeyShape::Number { .. }
        | KeyShape::Text
        | KeyShape::Choice(_)
        | KeyShape::SwitchesByName
        | KeyShape::TextsByName
        | KeyShape::ObjectsByName
        | KeyShape::ObjectsByNameOrList
        | KeyShape::Anything => {
            let first = counting.next();
            (first.map(|statement| shown(statement)), first.map(|statement| statement.source.clone()))
        }
    };
    let stated = statements.iter().map(|statement| SettingStatement {
        value: shown(statement),
        source: statement.source.clone(),
        standing: statement.standing,
    });
    EffectiveSetting {
        key,
        name: name.cloned(),
        value: value.or_else(|| key.default_value()),
        source,
        stated: stated.collect(),
    }
}
